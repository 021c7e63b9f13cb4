import type { CliContext } from "../../client/context.ts";
import { readHealth, type Health } from "../../client/health.ts";
import { formatAddress, type Address } from "../../config/kinds.ts";
import { sleep } from "../../core/clock.ts";
import { CliError } from "../../client/failure.ts";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { reachable } from "./service.ts";

const POLL_MS = 200;

/** What `/health` says at the address; undefined, with the reason, where nothing good comes. */
export async function healthAt(
  context: CliContext,
  { host, port }: Address,
): Promise<{ health: Health; reason: "" } | { health: undefined; reason: string }> {
  const url = `http://${formatAddress({ host: reachable(host), port })}`;
  try {
    return { health: await readHealth(context, { url, origin: "the service" }), reason: "" };
  } catch (error) {
    // What a client is told to do about it is not what is to be done about a service.
    const isUnreachable = error instanceof CliError && systemCodeOf(error.cause) !== undefined;
    return { health: undefined, reason: messageOf(isUnreachable ? error.cause : error) };
  }
}

/**
 * Waits until the server at the address says that it is well, and is of the version where one is given.
 * Returns why it is not, after `timeoutMs`; undefined when it is.
 */
export async function awaitHealth(
  context: CliContext,
  address: Address,
  { timeoutMs, version, signal }: { timeoutMs: number; version?: string; signal?: AbortSignal },
): Promise<string | undefined> {
  const { clock } = context.deps;
  for (const untilMs = clock.monotonicMs() + timeoutMs; ; await sleep(clock, POLL_MS, signal)) {
    const { health, reason } = await healthAt(context, address);
    const isExpected = version === undefined || health?.version === version;
    if (health?.status === "ok" && isExpected) return undefined;
    if (clock.monotonicMs() < untilMs) continue;
    if (health === undefined) return reason;
    return isExpected ? `the server is ${health.status}` : `version ${health.version} answers`;
  }
}
