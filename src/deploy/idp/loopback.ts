import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { CliError } from "../../client/failure.ts";
import { systemCodeOf } from "../../core/errors.ts";

/** Providers compare redirect addresses letter by letter, ports too: the app is registered with each of these. */
const PORTS = [7791, 7792, 7793] as const;
const PATH = "/callback";

const PAGE = "The answer has arrived. You can close this page and go back to the terminal.\n";
const HEADERS = {
  "Content-Type": "text/plain; charset=utf-8",
  "Content-Security-Policy": "default-src 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
  Connection: "close",
};

/** Where the browser brings the provider's answer: an address that only this machine reaches. */
export type Loopback = {
  redirectUri: string;
  /** The query of the first request for that address. */
  answer: Promise<URLSearchParams>;
  close(): void;
};

/** @throws CliError where all ports are taken */
export async function listenOnLoopback(): Promise<Loopback> {
  const { promise: answer, resolve } = Promise.withResolvers<URLSearchParams>();
  let redirectUri = "";
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? "", redirectUri);
    // A page that has its own name point to this machine asks for that name.
    const isForUs = request.headers.host === new URL(redirectUri).host && url?.pathname === PATH;
    if (url === null || request.method !== "GET" || !isForUs) {
      response.writeHead(404, HEADERS).end();
      return;
    }
    response.once("close", () => resolve(url.searchParams));
    response.writeHead(200, HEADERS).end(PAGE);
  });
  const port = await listen(server);
  redirectUri = `http://127.0.0.1:${port}${PATH}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { redirectUri, answer, close };
}

async function listen(server: Server): Promise<number> {
  for (const port of PORTS) {
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
      return port;
    } catch (error) {
      if (systemCodeOf(error) !== "EADDRINUSE") throw error;
    }
  }
  throw new CliError(
    `the ports ${PORTS.join(", ")} of 127.0.0.1 are taken: end the program that holds one of them, for the browser's answer arrives there`,
  );
}
