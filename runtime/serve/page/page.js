"use strict";
const $ = (id) => document.getElementById(id);

// --- The server -------------------------------------------------------------

/** Asks the server, to which the browser adds the key that it got for this
 * page; an answer that is no success is thrown as an Error whose `status` is the
 * HTTP status. */
async function ask(path, options) {
  // An address with a key in it (http://:KEY@host/) is no base for fetch.
  const response = await fetch(location.origin + path, options);
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const error = new Error(response.status === 401
    ? "the key is not accepted any more: reload the page to give another"
    : body.error?.message ?? `the server said ${response.status}`);
  error.status = response.status;
  throw error;
}

/** The parsed events of a text/event-stream, as they come. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: ?/gm, "");
      if (data === "[DONE]") return;
      if (!event.startsWith(":")) yield JSON.parse(data);
    }
  }
}

// --- Model ------------------------------------------------------------------

let model = null;

async function connect() {
  try {
    const models = await (await ask("/v1/models")).json();
    model = models.data[0].id;
    $("model").textContent = model;
    $("model").classList.remove("wrong");
    document.title = `${model} – Lathe`;
    watch();
  } catch (error) {
    const needsKey = error.status === 401;
    $("model").textContent = needsKey ? error.message : "no answer from the server; trying again";
    $("model").classList.add("wrong");
    if (!needsKey) setTimeout(connect, 2000);
  }
}

// --- Conversation -----------------------------------------------------------

let messages = [];
let running = null; // An AbortController while an answer comes.

/** Shows text with fenced code, inline code and bold; nothing else of Markdown,
 * and never HTML. */
function show(into, text) {
  into.replaceChildren();
  text.split(/^```.*\n?/m).forEach((part, index) => {
    if (index % 2 === 1) {
      const code = document.createElement("pre");
      code.textContent = part.replace(/\n$/, "");
      into.append(code);
    } else if (part || index === 0) {
      const block = document.createElement("div");
      block.className = "text";
      const around = part.replace(index > 0 ? /^\n+/ : /^/, "").replace(/\n+$/, "\n");
      for (const piece of around.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)) {
        const [name, cut] = piece.startsWith("`") && piece.length > 2 ? ["code", 1]
          : piece.startsWith("**") && piece.length > 4 ? ["b", 2] : [null, 0];
        if (!name) { block.append(piece); continue; }
        const marked = document.createElement(name);
        marked.textContent = piece.slice(cut, -cut);
        block.append(marked);
      }
      into.append(block);
    }
  });
}

function add(className) {
  $("greeting").hidden = true;
  const element = document.createElement("article");
  element.className = className;
  $("talk").append(element);
  return element;
}

function scrollDown() {
  $("talk").scrollTop = $("talk").scrollHeight;
}

function isAtEnd() {
  const talk = $("talk");
  return talk.scrollHeight - talk.scrollTop - talk.clientHeight < 60;
}

function milliseconds(value) {
  return value < 995 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(1)} s`;
}

function figures({ tokens, first, start, end, reason }) {
  const parts = [`${tokens} ${tokens === 1 ? "token" : "tokens"}`];
  if (tokens > 1 && end > first) parts.push(`${((tokens - 1) / (end - first) * 1000).toFixed(0)} tokens/s`);
  if (first) parts.push(`first after ${milliseconds(first - start)}`);
  if (reason === "length") parts.push("cut at the most tokens");
  if (reason === "stopped") parts.push("stopped");
  return parts.join(" · ");
}

function requestBody() {
  const body = {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    temperature: Number($("temperature").value),
    max_tokens: Number($("maxTokens").value),
  };
  if ($("seed").value !== "") body.seed = Number($("seed").value);
  return JSON.stringify(body);
}

async function send(text) {
  messages.push({ role: "user", content: text });
  add("user").textContent = text;
  const answer = add("answer writing");
  const content = document.createElement("div");
  const footer = document.createElement("footer");
  answer.append(content, footer);
  show(content, "");
  scrollDown();

  running = new AbortController();
  $("send").hidden = true;
  $("stop").hidden = false;
  const facts = { tokens: 0, start: performance.now(), first: 0, end: 0, reason: null };
  let said = "";
  let isDrawn = true; // As often as the screen is, not as tokens come.
  const drawSaid = () => {
    const follow = isAtEnd();
    show(content, said);
    if (follow) scrollDown();
    isDrawn = true;
  };
  try {
    const response = await ask("/v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: requestBody(),
      signal: running.signal,
    });
    for await (const event of eventsOf(response)) {
      if (event.error) throw new Error(event.error.message);
      const choice = event.choices?.[0];
      if (choice?.delta?.content) {
        facts.end = performance.now();
        facts.first ||= facts.end;
        facts.tokens += 1;
        said += choice.delta.content;
        if (isDrawn) requestAnimationFrame(drawSaid);
        isDrawn = false;
      }
      facts.reason = choice?.finish_reason ?? facts.reason;
      facts.tokens = event.usage?.completion_tokens ?? facts.tokens;
    }
    footer.textContent = figures(facts);
  } catch (error) {
    const wasStopped = error.name === "AbortError";
    footer.textContent = wasStopped ? figures({ ...facts, reason: "stopped" }) : error.message;
    footer.classList.toggle("wrong", !wasStopped);
  } finally {
    // What was not answered is not said again.
    if (said) messages.push({ role: "assistant", content: said });
    else messages.pop();
    drawSaid();
    answer.classList.remove("writing");
    running = null;
    $("send").hidden = false;
    $("stop").hidden = true;
    if (isAtEnd()) scrollDown();
    $("prompt").focus();
  }
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("prompt").value.trim();
  if (!text || running || !model) return;
  $("prompt").value = "";
  send(text);
});

$("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
});

$("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") running?.abort();
});

$("clear").addEventListener("click", () => {
  running?.abort();
  messages = [];
  for (const article of [...document.querySelectorAll("#talk > article")]) article.remove();
  $("greeting").hidden = false;
  $("prompt").focus();
});

// --- Charts -----------------------------------------------------------------

const samples = 90;
const interval = 1000; // ms
const history = { throughput: [], cache: [], queue: [], waiting: [] };
let before = null;
let watching = 0; // Only the newest watch() goes on.

/** { name: sum over all labels } of Prometheus' text. */
function parseMetrics(text) {
  const values = {};
  for (const line of text.split("\n")) {
    const match = /^lathe:(\w+)(?:\{([^}]*)\})? (\S+)/.exec(line);
    if (match && !match[1].endsWith("_bucket"))
      values[match[1]] = (values[match[1]] ?? 0) + Number(match[3]);
  }
  return values;
}

function keep(name, value) {
  history[name].push(value);
  history[name].splice(0, history[name].length - samples);
}

/** Draws the newest samples at the right; the scale starts at 0. */
function draw(id, classes, series, least) {
  const most = Math.max(least, ...series.flat());
  const point = (values, index) => {
    const x = 240 - (values.length - 1 - index) * (240 / (samples - 1));
    return `${x.toFixed(1)},${(62 - 58 * values[index] / most).toFixed(1)}`;
  };
  series.forEach((values, index) => {
    const line = "M" + values.map((_, at) => point(values, at)).join("L");
    $(id).querySelector(classes[index]).setAttribute("d", line);
    if (index === 0) {
      const left = point(values, 0).split(",")[0];
      $(id).querySelector(".area").setAttribute("d", `${line}L240,64L${left},64Z`);
    }
  });
}

/** The mean of what a histogram has got since the last sample, in ms. */
function meanSince(now, name) {
  const count = now[`${name}_count`] - before[`${name}_count`];
  return count > 0 ? (now[`${name}_sum`] - before[`${name}_sum`]) / count * 1000 : null;
}

function update(now) {
  if (before) {
    const seconds = (now.at - before.at) / 1000;
    const made = Math.max(0, now.generation_tokens_total - before.generation_tokens_total);
    keep("throughput", made / seconds);
    const first = meanSince(now, "time_to_first_token_seconds");
    const next = meanSince(now, "inter_token_latency_seconds");
    if (first !== null) $("firstToken").textContent = milliseconds(first);
    if (next !== null) $("nextToken").textContent = milliseconds(next);
  } else {
    keep("throughput", 0);
  }
  keep("cache", now.kv_cache_usage_perc * 100);
  keep("queue", now.num_requests_running);
  keep("waiting", now.num_requests_waiting);
  if (now.prefix_cache_queries_total > 0)
    $("prefix").textContent =
      `${(now.prefix_cache_hits_total / now.prefix_cache_queries_total * 100).toFixed(0)} % found`;

  draw("throughput", [".line"], [history.throughput], 1);
  draw("cache", [".line"], [history.cache], 100);
  draw("queue", [".line", ".second"], [history.queue, history.waiting], 4);
  const last = (name) => history[name].at(-1);
  const figure = (id, value) => { $(id).querySelector("output").textContent = value; };
  figure("throughput", last("throughput").toFixed(0));
  figure("cache", last("cache").toFixed(last("cache") > 0 && last("cache") < 10 ? 1 : 0));
  figure("queue", last("queue"));
  $("waiting").textContent = last("waiting");
  before = now;
}

async function watch() {
  const mine = ++watching;
  while (mine === watching) {
    if (!document.hidden) {
      try {
        const text = await (await ask("/metrics")).text();
        if (mine === watching) update({ ...parseMetrics(text), at: performance.now() });
      } catch (error) {
        if (mine !== watching) return;
        before = null;
        return connect();
      }
    }
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}

// --- Light and dark ---------------------------------------------------------

const storedTheme = "lathe-theme";

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

$("theme").addEventListener("click", () => {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const theme = isDark ? "light" : "dark";
  localStorage.setItem(storedTheme, theme);
  applyTheme(theme);
});

applyTheme(localStorage.getItem(storedTheme));
connect();
