/// \file
/// Which page a browser's request comes from.
#ifndef LATHE_RUNTIME_SERVE_HTTP_ORIGIN_H
#define LATHE_RUNTIME_SERVE_HTTP_ORIGIN_H

#include "runtime/serve/http/Http.h"

namespace lathe::runtime::http {

/// True if the browser says that another page than one of this server's own
/// makes this request or links to it: by Origin, whose host and port are then
/// not those of Host, or by Sec-Fetch-Site. Browsers send Origin with every
/// POST, but Sec-Fetch-Site only over HTTPS and to this machine itself; who is
/// no browser sends neither.
bool isFromOtherPage(const Request &request);

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_ORIGIN_H
