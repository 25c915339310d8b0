//===- KernelEnums.td - Enumerations of the schedule dialect --------*- tablegen -*-===//

#ifndef LATHE_IR_KERNEL_ENUMS_TD
#define LATHE_IR_KERNEL_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def Store_F32 : I32EnumAttrCase<"F32", 0, "f32">;
def Store_Q8 : I32EnumAttrCase<"Q8", 1, "q8">;
def StoreEnum : I32EnumAttr<"Store",
    "how rows are stored: f32, or int8 activation blocks", [Store_F32, Store_Q8]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

def Side_Element : I32EnumAttrCase<"Element", 0, "element">;
def Side_Column : I32EnumAttrCase<"Column", 1, "column">;
def Side_Row : I32EnumAttrCase<"Row", 2, "row">;
def SideEnum : I32EnumAttr<"Side",
    "what a side operand is indexed by: (row, column), column or row",
    [Side_Element, Side_Column, Side_Row]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

def LaunchRows_Tokens : I32EnumAttrCase<"Tokens", 0, "T">;
def LaunchRows_Sequences : I32EnumAttrCase<"Sequences", 1, "S">;
def LaunchRows_Head : I32EnumAttrCase<"Head", 2, "R">;
def LaunchRows_Work : I32EnumAttrCase<"Work", 3, "work">;
def LaunchRowsEnum : I32EnumAttr<"LaunchRows",
    "which live count of the step a launch runs over",
    [LaunchRows_Tokens, LaunchRows_Sequences, LaunchRows_Head, LaunchRows_Work]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

def StepBuffer_Hidden : I32EnumAttrCase<"Hidden", 0, "hidden">;
def StepBuffer_HeadInput : I32EnumAttrCase<"HeadInput", 1, "head_input">;
def StepBuffer_Logits : I32EnumAttrCase<"Logits", 2, "logits">;
def StepBuffer_Picked : I32EnumAttrCase<"Picked", 3, "picked">;
def StepBufferEnum : I32EnumAttr<"StepBuffer",
    "a buffer that the runtime passes to a step",
    [StepBuffer_Hidden, StepBuffer_HeadInput, StepBuffer_Logits,
     StepBuffer_Picked]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

def Contract_Matmul : I32EnumAttrCase<"Matmul", 0, "matmul">;
def Contract_MatmulTransposed : I32EnumAttrCase<"MatmulTransposed", 1, "matmul_transposed">;
def Contract_Softmax : I32EnumAttrCase<"Softmax", 2, "softmax">;
def Contract_Mask : I32EnumAttrCase<"Mask", 3, "mask">;
def Contract_Map : I32EnumAttrCase<"Map", 4, "map">;
def Contract_Combine : I32EnumAttrCase<"Combine", 5, "combine">;
def Contract_Transpose : I32EnumAttrCase<"Transpose", 6, "transpose">;
def Contract_RepeatHeads : I32EnumAttrCase<"RepeatHeads", 7, "repeat_heads">;
def Contract_Norm : I32EnumAttrCase<"Norm", 8, "norm">;
def Contract_Rope : I32EnumAttrCase<"Rope", 9, "rope">;
def Contract_Attention : I32EnumAttrCase<"Attention", 10, "attention">;
def Contract_Linear : I32EnumAttrCase<"Linear", 11, "linear">;
def ContractOpEnum : I32EnumAttr<"ContractOp",
    "what a contract kernel computes",
    [Contract_Matmul, Contract_MatmulTransposed, Contract_Softmax, Contract_Mask, Contract_Map, Contract_Combine,
     Contract_Transpose, Contract_RepeatHeads, Contract_Norm, Contract_Rope, Contract_Attention, Contract_Linear]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}

#endif // LATHE_IR_KERNEL_ENUMS_TD
