import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SHARED_SOCKET, type SharedServers } from "../../src/core/shared-servers.test-kit.ts";

type Started<T> = { where: T; stop: () => Promise<void> };
type Starters = { readonly [T in keyof SharedServers]: () => Promise<Started<SharedServers[T]>> };

/** Loaded when a file asks: most runs need none of them. */
const STARTERS: Starters = {
  async postgres() {
    const { findPostgresPrograms } = await import("../../src/db/postgres/server-programs.ts");
    const { NO_FSYNC, startTestServer } = await import("../../src/catalog/postgres/postgres.test-kit.ts");
    const programs = findPostgresPrograms()?.folder;
    if (programs === undefined) throw new Error("PostgreSQL is not installed");
    const server = await startTestServer(programs, { ...NO_FSYNC, max_connections: "400" });
    return { where: { port: server.port }, stop: () => server.stop() };
  },
  async versitygw() {
    const { findVersitygw, startVersitygw } = await import("../../src/io/objectstore/s3/versitygw.test-kit.ts");
    const program = await findVersitygw();
    if (program === undefined) throw new Error("there is no Go to build versitygw with");
    const server = await startVersitygw(program);
    const { endpoint, region, folder } = server;
    return { where: { endpoint, region, folder }, stop: () => server.stop() };
  },
};

/**
 * Starts each of the servers that the files of a run share when a file first asks for it on a socket, whose path is in
 * the environment of the files. Returns what stops them all.
 */
export async function serveSharedServers(): Promise<() => Promise<void>> {
  // Each project of the run sets up, and so does a run that a test starts.
  if (process.env[SHARED_SOCKET] !== undefined) return () => Promise.resolve();
  const folder = await mkdtemp(join(tmpdir(), "engine-shared-"));
  const socketPath = join(folder, "socket");
  const started = new Map<string, Promise<Started<unknown>>>();
  const answer = async (name: string, response: ServerResponse): Promise<void> => {
    try {
      const start = STARTERS[name as keyof SharedServers];
      const starting = started.get(name) ?? start();
      started.set(name, starting);
      response.end(JSON.stringify((await starting).where));
    } catch (error) {
      response.writeHead(500).end(JSON.stringify(String(error)));
    }
  };
  const server = createServer(({ url = "" }, response) => void answer(url.slice(1), response)).listen(socketPath);
  await once(server, "listening");
  process.env[SHARED_SOCKET] = socketPath;
  return async () => {
    delete process.env[SHARED_SOCKET];
    server.close();
    for (const starting of await Promise.allSettled(started.values())) {
      if (starting.status === "fulfilled") await starting.value.stop();
    }
    await rm(folder, { recursive: true });
  };
}
