//===- LatheEnums.td - Enumerations of the graph dialect ------------*- tablegen -*-===//

#ifndef LATHE_IR_LATHE_ENUMS_TD
#define LATHE_IR_LATHE_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def Layout_Rows : I32EnumAttrCase<"Rows", 0, "rows">;
def Layout_R16 : I32EnumAttrCase<"R16", 1, "r16">;
def LayoutEnum : I32EnumAttr<"Layout",
    "the order of a weight's bits: the source's rows, or r16", [Layout_Rows, Layout_R16]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

def RopeStyle_Adjacent : I32EnumAttrCase<"Adjacent", 0, "adjacent">;
def RopeStyle_Halves : I32EnumAttrCase<"Halves", 1, "halves">;
def RopeStyleEnum : I32EnumAttr<"RopeStyle",
    "which values a rotation pairs: (2i, 2i+1), or (i, i + dims/2)",
    [RopeStyle_Adjacent, RopeStyle_Halves]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

def KvKind_Full : I32EnumAttrCase<"Full", 0, "full">;
def KvKind_Window : I32EnumAttrCase<"Window", 1, "window">;
def KvKindEnum : I32EnumAttr<"KvKind",
    "which tokens of a sequence a KV group keeps", [KvKind_Full, KvKind_Window]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

#endif // LATHE_IR_LATHE_ENUMS_TD
