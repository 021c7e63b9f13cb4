import { createHttpServer } from "../io/http/create.ts";
import { createApp, type AppOptions } from "./app.ts";
import { asEngineError, errorResponse } from "./error-response.ts";

/** Serves routes as a role does, on a port of this machine and without proxies or browsers. */
export async function serveApp(
  options: Pick<AppOptions, "routes" | "authenticator" | "clock" | "newId" | "log" | "metrics">,
  driver: "node" | "uws" = "node",
): Promise<{ url: string; close: () => Promise<void> }> {
  const app = createApp({
    ...options,
    browsers: { origins: undefined, ownOrigins: [], hosts: [] },
    isTrustedProxy: () => false,
    isDraining: () => false,
  });
  const server = createHttpServer({
    driver,
    handler: app.handler,
    maxHeaderBytes: 65_536,
    headersTimeoutMs: 15_000,
    idleTimeoutMs: 60_000,
    renderError: (error) => errorResponse(asEngineError(error, "none"), "none"),
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}
