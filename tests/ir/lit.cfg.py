import os

import lit.formats

config.name = "lathe"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ["LIT_OUT"]
config.environment["PATH"] = os.pathsep.join(
    [os.environ["LATHE_BIN"], os.environ["LLVM_BIN"], os.environ["PATH"]]
)
