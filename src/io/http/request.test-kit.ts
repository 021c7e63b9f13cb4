import type { HttpRequest } from "./http.ts";

/** A request with these headers and no body, for functions that read nothing else of it. */
export function requestWith(headers: Readonly<Record<string, string>>, scheme: "http" | "https" = "http"): HttpRequest {
  return {
    scheme,
    method: "GET",
    path: "/x",
    query: "",
    remoteAddress: "127.0.0.1",
    signal: new AbortController().signal,
    webSocket: undefined,
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
    body: () => Promise.reject(new Error("not used")),
    stream: () => {
      throw new Error("not used");
    },
  };
}
