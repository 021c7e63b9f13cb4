import { apiFailure, connectionFailure, openClient, readApiError, readText, type Target } from "./client.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failure.ts";
import { visible } from "./text.ts";

const TIMEOUT_MS = 10_000;

export type Health = {
  status: string;
  version: string;
  /** How the operating system keeps query processes in, where the server has any. */
  query_confinement?: string;
};

/** Asks the server how it is. @throws CliError when there is no answer, or it is no engine's. */
export async function readHealth(context: CliContext, target: Target): Promise<Health> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const reply = await client.send({ method: "GET", path: "/health", timeoutMs: TIMEOUT_MS });
    // A draining server answers 503, and still says what it is.
    if (reply.status !== 200 && reply.status !== 503) throw apiFailure(await readApiError(reply), target);
    const health = parseHealth(await readText(reply));
    if (health === undefined) throw new CliError(`what answers at ${target.url} (${reply.status}) is no engine`);
    return health;
  } catch (error) {
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

function parseHealth(text: string): Health | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("status" in value) || !("version" in value)) return undefined;
    const health = { status: visible(String(value.status)), version: visible(String(value.version)) };
    if (!("query_confinement" in value)) return health;
    return { ...health, query_confinement: visible(String(value.query_confinement)) };
  } catch {
    return undefined;
  }
}
