/// \file
/// The page that the server shows, as it was when this was built.
#ifndef LATHE_RUNTIME_SERVE_PAGETEXT_H
#define LATHE_RUNTIME_SERVE_PAGETEXT_H

#include <string_view>

namespace lathe::runtime::serve {

/// page/index.html with page.css and page.js in place (EmbedPage.cmake).
std::string_view pageText();

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_PAGETEXT_H
