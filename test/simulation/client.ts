import { ANONYMOUS } from "../../src/auth/caller.ts";
import { sleep, type Clock } from "../../src/core/clock.ts";
import { EngineError, messageOf } from "../../src/core/errors.ts";
import type { IngestAck, IngestService } from "../../src/ingest/ingest.ts";
import type { Machine } from "./machine.ts";
import type { Model } from "./model.ts";
import type { Network } from "./network.ts";
import { makeRequest, type SimulatedRequest } from "./requests.ts";
import type { Lane, Scheduler } from "./scheduler.ts";

/** A node that takes requests, and how many of them it has not answered. */
export type IngestNode = { machine: Machine; service: IngestService; inHand: number };

export type ClientPorts = {
  scheduler: Scheduler;
  network: Network;
  model: Model;
  lane: Lane;
  clock: Clock;
  /** How many requests have a key. */
  keyedShare: number;
  /** Those that there are now. */
  nodes: () => readonly IngestNode[];
};

const HOUR_MS = 3_600_000;
/** A key is good for a day, and the first try may have taken its time. */
const RETRY_WITHIN_MS = 12 * HOUR_MS;
const PAUSES_MS = [5, 500, 5_000, 20_000, HOUR_MS];
/** A node that does not answer for so long is given up. */
const TIMEOUT_MS = 30_000;
const MOST_TRIES = 8;

/**
 * One client: sends requests one after the other, and each again until it is acknowledged, for as long as it has a key
 * and patience. Some are sent again although they are acknowledged, or to two nodes at once.
 */
export async function runClient(ports: ClientPorts, name: string, requests: number): Promise<void> {
  const { scheduler, clock, model } = ports;
  for (let number = 0; number < requests; number++) {
    await sleep(clock, scheduler.below(scheduler.pick([2, 20, 4_000])));
    const isKeyed = scheduler.chance(ports.keyedShare);
    const request = makeRequest(scheduler.random, { id: `${name}.${number}`, isKeyed, nowMs: scheduler.nowMs });
    model.sends(request);
    if (request.key !== undefined && scheduler.chance(0.1)) {
      await Promise.all([sendUntilTold(ports, request), sendUntilTold(ports, request)]);
    } else await sendUntilTold(ports, request);
  }
}

async function sendUntilTold(ports: ClientPorts, request: SimulatedRequest): Promise<void> {
  const { scheduler, clock } = ports;
  const firstMs = scheduler.nowMs;
  const silent = new Set<IngestNode>();
  for (let tries = 1; ; tries++) {
    const isTold = await send(ports, request, silent);
    if (request.key === undefined || tries === MOST_TRIES || scheduler.chance(isTold ? 0.85 : 0.1)) return;
    await sleep(clock, scheduler.below(scheduler.pick(PAUSES_MS)));
    if (scheduler.nowMs - firstMs > RETRY_WITHIN_MS) return;
  }
}

/** Resolves to whether the client knows what became of it. A node that says nothing is left for another. */
async function send(ports: ClientPorts, request: SimulatedRequest, silent: Set<IngestNode>): Promise<boolean> {
  const { scheduler } = ports;
  const all = ports.nodes();
  if (all.length === 0) return false;
  const others = all.filter((node) => !silent.has(node));
  const node = scheduler.pick(others.length > 0 ? others : all);
  const { machine } = node;
  const told = Promise.withResolvers<boolean>();
  const stop = machine.whenDead(() => later(ports, "connection reset", () => told.resolve(false)));
  const timer = ports.clock.after(TIMEOUT_MS, () => {
    silent.add(node);
    told.resolve(false);
  });
  later(ports, `${request.id} to ${machine.name}`, () => {
    // Nobody takes it from a process that stands still for long: its client has hung up before.
    if (machine.lane.isCut || machine.lane.frozenUntilMs > scheduler.nowMs) return;
    void take(ports, node, request, told.resolve);
  });
  const isTold = await told.promise;
  stop();
  timer.cancel();
  return isTold;
}

/** What the node does with it; `tell` hears whether the client knows what became of it. */
async function take(
  ports: ClientPorts,
  node: IngestNode,
  request: SimulatedRequest,
  tell: (isKnown: boolean) => void,
): Promise<void> {
  const { scheduler, network, model } = ports;
  const answer = (text: string, isFinal: boolean): void => {
    // An answer may get lost like anything else.
    const isHeard = !scheduler.chance(network.rates.unheard);
    later(ports, `${request.id} ${text}${isHeard ? "" : " (unheard)"}`, () => tell(isFinal && isHeard));
  };
  node.inHand++;
  try {
    const ack = await ingest(node.service, request);
    model.acknowledges(request, ack);
    answer(ack.replayed ? "replayed" : "acknowledged", true);
  } catch (error) {
    const code = error instanceof EngineError ? error.code : "internal";
    answer(`${code}: ${messageOf(error)}`, code === "bad_request_body");
  } finally {
    node.inHand--;
  }
}

function ingest(
  service: IngestService,
  { table, key, evolve, inferTypes, bytes }: SimulatedRequest,
): Promise<IngestAck> {
  return service.ingest({
    caller: ANONYMOUS,
    database: "default",
    table,
    ...(key === undefined ? {} : { idempotencyKey: key }),
    autoCreate: true,
    evolve,
    ...(inferTypes === undefined ? {} : { inferTypes }),
    expectedBytes: bytes.length,
    readBody: async () => Uint8Array.from(bytes),
  });
}

/** Does it when the network comes to it. */
function later({ scheduler, network }: ClientPorts, label: string, run: () => void): void {
  scheduler.at({ dueMs: scheduler.nowMs + (network.delayMs() % 1_000), lane: undefined, label, run });
}
