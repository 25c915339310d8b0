# Writes OUT, a C++ source with the page in DIR as one text: index.html with
# page.css and page.js where it names them.
file(READ ${DIR}/index.html page)
foreach(part style:css script:js)
  string(REPLACE ":" ";" part ${part})
  list(GET part 0 name)
  list(GET part 1 extension)
  file(READ ${DIR}/page.${extension} content)
  string(REPLACE "/*@${name}@*/" "\n${content}" page "${page}")
endforeach()
file(WRITE ${OUT} "#include \"runtime/serve/PageText.h\"\n\n"
  "std::string_view lathe::runtime::serve::pageText() {\n"
  "  return R\"LATHE(${page})LATHE\";\n}\n")
