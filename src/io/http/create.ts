import { messageOf, StartupError } from "../../core/errors.ts";
import type { HttpServer, HttpServerOptions } from "./http.ts";
import { NodeHttpServer } from "./node.ts";
import { loadUws, type UwsLibrary } from "./uws-library.ts";
import { UwsHttpServer } from "./uws.ts";

export type HttpDriver = "auto" | "uws" | "node";

/**
 * `auto` takes `node`, which reads HTTP strictly and byte for byte; `http.ts` says what uWebSockets.js does not.
 *
 * For that ingest costs 2 to 3 % more CPU (`bench/load/ingest.ts drivers`, 2026-11).
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
