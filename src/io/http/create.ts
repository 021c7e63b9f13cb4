import { messageOf, StartupError } from "../../core/errors.ts";
import type { HttpServer, HttpServerOptions } from "./http.ts";
import { NodeHttpServer } from "./node.ts";
import { loadUws, type UwsLibrary } from "./uws-library.ts";
import { UwsHttpServer } from "./uws.ts";

export type HttpDriver = "auto" | "uws" | "node";

/**
 * `auto` takes `node`, which reads HTTP strictly and byte for byte; `http.ts` says what uWebSockets.js does not.
 *
 * For that a request costs some 9 µs more CPU, and a MiB of a body 0.1 to 0.2 ms: of all that ingest costs 7 to 9 %
 * (`load/ingest --preset drivers`, Node 22, two cores that others used too, 2026-11). A driver of our own on node:net could
 * be as fast as uWebSockets.js (10 µs a request against 13, without checks); until there is one, llhttp is the parser that
 * has been attacked for longest.
 * @throws StartupError when `uws` is asked for and doesn't load.
 */
export function createHttpServer(options: HttpServerOptions & { driver: HttpDriver }): HttpServer {
  if (options.driver !== "uws") return new NodeHttpServer(options);
  let library: UwsLibrary;
  try {
    library = loadUws(options.maxHeaderBytes);
  } catch (error) {
    throw new StartupError(`the HTTP driver uws can't be loaded: ${messageOf(error)}`, 2, error);
  }
  return new UwsHttpServer(options, library);
}
