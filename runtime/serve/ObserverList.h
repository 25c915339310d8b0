/// \file
/// Several observers that look like one.
#ifndef LATHE_RUNTIME_SERVE_OBSERVERLIST_H
#define LATHE_RUNTIME_SERVE_OBSERVERLIST_H

#include "runtime/serve/Observer.h"

#include <vector>

namespace lathe::runtime::serve {

/// Tells each of them, in order. Null ones are left out.
std::shared_ptr<Observer>
observeAll(std::vector<std::shared_ptr<Observer>> observers);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_OBSERVERLIST_H
