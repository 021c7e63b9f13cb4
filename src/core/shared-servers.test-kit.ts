import { request } from "node:http";
import { once } from "node:events";
import { json } from "node:stream/consumers";

/**
 * Servers that the files of a test run share. The run's own process starts each when a file first asks for it, and stops
 * it when the run ends: `test/support/global-setup.ts`.
 */
export type SharedServers = {
  postgres: { port: number };
  versitygw: { endpoint: string; region: string; folder: string };
};

/** The environment variable with the path of the socket on which the run's process is asked. */
export const SHARED_SOCKET = "TEST_SHARED_SOCKET";

/** Where the run's server is, which is started if it is not there yet. Throws what keeps it from starting. */
export async function askForSharedServer<T extends keyof SharedServers>(name: T): Promise<SharedServers[T]> {
  const socketPath = process.env[SHARED_SOCKET];
  if (socketPath === undefined) throw new Error(`there is no ${SHARED_SOCKET}: this is not a test run`);
  const asked = request({ socketPath, path: `/${name}` }).end();
  const [response] = (await once(asked, "response")) as [NodeJS.ReadableStream & { statusCode?: number }];
  const answer = await json(response);
  if (response.statusCode !== 200) throw new Error(`the shared ${name} did not start: ${JSON.stringify(answer)}`);
  return answer as SharedServers[T];
}
