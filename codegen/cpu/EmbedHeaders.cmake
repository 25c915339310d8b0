# Writes OUT, a C++ source with the text of every header in FILES (paths
# relative to ROOT, separated by '|') as codegen::embeddedHeaders().
string(REPLACE "|" ";" files "${FILES}")
set(text "#include \"codegen/cpu/EmbeddedHeaders.h\"\n\n")
string(APPEND text "using lathe::codegen::EmbeddedHeader;\n\n")
string(APPEND text "static const EmbeddedHeader headers[] = {\n")
foreach(file ${files})
  file(READ ${ROOT}/${file} content)
  string(APPEND text "{\"${file}\", R\"LATHE(${content})LATHE\"},\n")
endforeach()
string(APPEND text "};\n\nstd::span<const EmbeddedHeader> lathe::codegen::embeddedHeaders() {\n")
string(APPEND text "  return headers;\n}\n")
file(WRITE ${OUT} "${text}")
