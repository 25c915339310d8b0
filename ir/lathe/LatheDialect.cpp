#include "ir/lathe/Lathe.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lathe::ir;

#include "ir/lathe/LatheDialect.cpp.inc"
#include "ir/lathe/LatheEnums.cpp.inc"

FailureOr<lathe::kernels::Format> lathe::ir::parseFormat(AsmParser &parser) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  if (auto format = kernels::formatFromName(word))
    return *format;
  InFlightDiagnostic diag = parser.emitError(loc) << "unknown block format '"
                                                  << word << "'; known are";
  for (const kernels::FormatTraits &traits : kernels::formatTable)
    diag << " " << StringRef(traits.mnemonic);
  return failure();
}

FailureOr<bool> lathe::ir::parseBool(AsmParser &parser) {
  if (succeeded(parser.parseOptionalKeyword("true")))
    return true;
  if (parser.parseKeyword("false", ", or 'true', expected"))
    return failure();
  return false;
}

#define GET_TYPEDEF_CLASSES
#include "ir/lathe/LatheTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/lathe/LatheAttrs.cpp.inc"

void LatheDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/lathe/LatheTypes.cpp.inc"
      >();
}

void LatheDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/lathe/LatheAttrs.cpp.inc"
      >();
}

void LatheDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/lathe/LatheOps.cpp.inc"
      >();
}

/// The ops that belong to the other form than the module's.
static LogicalResult verifyForm(Operation *module, bool step) {
  WalkResult result = module->walk([&](Operation *op) {
    bool ofStep = isa<KvGroupOp, KvAppendOp, PagedAttentionOp>(op);
    bool ofSequence = isa<AttentionOp, MaskOp>(op);
    if (step ? !ofSequence : !ofStep)
      return WalkResult::advance();
    op->emitOpError("belongs to ")
        << (ofStep ? "step" : "sequence") << " form, but the module is in "
        << (step ? "step" : "sequence") << " form";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult LatheDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attr) {
  StringRef name = attr.getName();
  if (!isa<ModuleOp>(op))
    return op->emitOpError("carries '")
           << name << "', which belongs on the module";
  if (name == formAttrName) {
    auto form = dyn_cast<StringAttr>(attr.getValue());
    if (!form || (form.getValue() != "sequence" && form.getValue() != "step"))
      return op->emitOpError("'lathe.form' must be \"sequence\" or \"step\"");
    return verifyForm(op, form.getValue() == "step");
  } else if (name == phaseAttrName) {
    if (!isa<StringAttr>(attr.getValue()))
      return op->emitOpError("'lathe.phase' must be a string");
  } else if (name == modelAttrName) {
    if (!isa<ModelAttr>(attr.getValue()))
      return op->emitOpError("'lathe.model' must be a #lathe.model");
  } else if (name == filesAttrName) {
    auto files = dyn_cast<ArrayAttr>(attr.getValue());
    if (!files ||
        !llvm::all_of(files, [](Attribute a) { return isa<FileAttr>(a); }))
      return op->emitOpError("'lathe.files' must be an array of #lathe.file");
  }
  return success();
}

bool lathe::ir::isStepForm(ModuleOp module) {
  auto form = module->getAttrOfType<StringAttr>(LatheDialect::formAttrName);
  return form && form.getValue() == "step";
}
