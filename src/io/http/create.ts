import { messageOf, StartupError } from "../../core/errors.ts";
import type { HttpServer, HttpServerOptions } from "./http.ts";
import { NodeHttpServer } from "./node.ts";
import { loadUws, type UwsLibrary } from "./uws-library.ts";
import { UwsHttpServer } from "./uws.ts";

export type HttpDriver = "auto" | "uws" | "node";

/** `auto` takes uWebSockets.js where it loads. Throws a `StartupError` when it is asked for and doesn't. */
export function createHttpServer(options: HttpServerOptions & { driver: HttpDriver }): HttpServer {
  if (options.driver === "node") return new NodeHttpServer(options);
  let library: UwsLibrary;
  try {
    library = loadUws(options.maxHeaderBytes);
  } catch (error) {
    if (options.driver === "auto") return new NodeHttpServer(options);
    throw new StartupError(`the HTTP driver uws can't be loaded: ${messageOf(error)}`, 2, error);
  }
  return new UwsHttpServer(options, library);
}
