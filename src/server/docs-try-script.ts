/**
 * The script of the reference page: sends what a route's form says, and shows the answer. It is the page's only script,
 * and the content security policy names it by its hash.
 *
 * - The token is in a password field outside of every form, and nowhere else: not in storage, not in an address. It goes to
 *   this server alone, for the policy lets the page connect nowhere else, and it is gone with the page.
 * - What the server answers is shown as text (`textContent`), never as HTML.
 */
export const TRY_SCRIPT = `"use strict";
(() => {
  const MOST_CHARS = 200000;
  const TEXT = /^(text\\/|application\\/(json|toml|x-ndjson|problem\\+json|openmetrics-text|xml|.*\\+json))/;
  const token = document.getElementById("token");

  function requestOf({ method, path, type }, fields, secret) {
    const headers = {};
    const query = new URLSearchParams();
    let place = path;
    let body;
    for (const { where, name, value } of fields) {
      if (where === "path") {
        const isRest = place.includes("{*" + name + "}");
        const parts = isRest ? value.split("/") : [value];
        if (parts.some((part) => part === "" || part === "." || part === "..")) {
          throw new Error(name + ": accepted are names other than . and ..");
        }
        place = place.replace(isRest ? "{*" + name + "}" : "{" + name + "}", () => parts.map(encodeURIComponent).join("/"));
      } else if (value === "") continue;
      else if (where === "query") query.append(name, value);
      else if (where === "header") headers[name] = value;
      else if (where === "type") type = value;
      else if (where === "body") body = value;
    }
    if (secret !== "") headers["Authorization"] = "Bearer " + secret;
    if (body !== undefined && type) headers["Content-Type"] = type;
    const search = query.toString();
    const init = { method, headers, credentials: "omit", cache: "no-store", redirect: "manual", referrerPolicy: "no-referrer" };
    if (body !== undefined) init.body = body;
    return { url: "." + place + (search === "" ? "" : "?" + search), init };
  }

  async function show(response, tell) {
    const lines = ["HTTP " + response.status + " " + response.statusText];
    response.headers.forEach((value, name) => lines.push(name + ": " + value));
    tell(lines.join("\\n") + "\\n\\n");
    if (response.body === null) return;
    const isText = TEXT.test(response.headers.get("content-type") || "");
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    let shown = 0;
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      if (!isText) continue;
      const text = decoder.decode(value, { stream: true }).slice(0, MOST_CHARS - shown);
      shown += text.length;
      tell(text);
      if (shown < MOST_CHARS) continue;
      await reader.cancel();
      tell("\\n[the rest is not shown]");
      return;
    }
    if (!isText) tell("[" + bytes + " bytes that are not text]");
  }

  for (const form of document.querySelectorAll("form[data-path]")) {
    const [send, stop] = form.querySelectorAll("button");
    const answer = form.querySelector("pre");
    let running;
    stop.addEventListener("click", () => running && running.abort());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (running) return;
      running = new AbortController();
      [send.disabled, stop.hidden, answer.hidden, answer.textContent] = [true, false, false, ""];
      const tell = (text) => answer.append(text);
      try {
        const fields = [...form.querySelectorAll("[data-in]")].map(({ dataset, value }) => ({ where: dataset.in, name: dataset.name, value }));
        const { url, init } = requestOf(form.dataset, fields, token.value.trim());
        await show(await fetch(new URL(url, location.href), { ...init, signal: running.signal }), tell);
      } catch (error) {
        tell(running.signal.aborted ? "\\n[stopped]" : "\\n" + error);
      } finally {
        running = undefined;
        [send.disabled, stop.hidden] = [false, true];
      }
    });
  }
  addEventListener("pagehide", () => (token.value = ""));
})();
`;
