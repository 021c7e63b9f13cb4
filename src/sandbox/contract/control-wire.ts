import { z } from "zod";
import type { SandboxSpec } from "./spec.ts";
import { SANDBOX_EVENT_TYPES, type NewSandboxEvent } from "./event.ts";
import { contentBlock } from "./content.ts";
import type { Turn, TurnMessage, TurnReport } from "./turn.ts";
import { SANDBOX_STATES, SANDBOX_WANTS } from "./states.ts";
import type { NodeAnswer, NodeReport, SandboxBatch, DesiredState } from "./control-port.ts";

/**
 * `ControlPort` as JSON, for the routes of nodes and for the nodes that call them. Each side ignores fields that it does
 * not know: while a cluster is upgraded, the other one may be newer.
 */

const MAX_NAME_CHARS = 200;
const MAX_IMAGES = 1_000;
const MAX_KEPT = 10_000;
const MAX_UNUSED = 1_000;
/** See `BATCH_LIMITS`. */
const MAX_EVENTS = 1_000;
/** Of the body of a batch. */
export const BATCH_BYTES = 16 * 1024 * 1024;

/** A name that databases and logs can hold. */
const text = z
  .string()
  .min(1)
  .max(MAX_NAME_CHARS)
  .refine(
    (name) => name.isWellFormed() && !/\p{Cc}/u.test(name),
    "accepted are characters that are no control characters",
  );
const amount = z.int().min(0);

export const wireReport = z.object({
  name: text,
  runtime: text,
  labels: z.record(text, text),
  images: z.array(text).max(MAX_IMAGES),
  capacity: z.object({ cpu_millis: amount, memory_mb: amount, disk_mb: amount, sandboxes: amount }),
  boot_id: text.describe("Another one after each start of the machine."),
  keeps: z.array(z.uuid()).max(MAX_KEPT).optional().describe("Sandboxes of which only a disk is here."),
  unused_volumes: z.array(text).max(MAX_UNUSED).optional().describe("Volumes that nobody here has used for long."),
  removed_volumes: z.array(text).max(MAX_UNUSED).optional().describe("Those of `deleted_volumes` that are gone here."),
});

export const wireAnswer = z.object({
  drain: z.boolean().describe("It is to take no more sandboxes."),
  gateways: z.array(z.string()).describe("To each of these it is to keep a connection."),
  gone: z.array(z.string()).describe("Those of `keeps` that are no more."),
  gone_volumes: z.array(z.string()).default([]).describe("Those of `unused_volumes` that it is to remove."),
  deleted_volumes: z.array(z.string()).default([]).describe("Volumes that it is to remove, and to say so."),
});

const wireTurn = z.object({
  session_id: z.string(),
  turn_id: z.string(),
  content: z.array(contentBlock),
  agent_session_id: z.string().optional(),
  messages_before: amount,
  interrupted: z.boolean(),
});

export const wireHistory = z.object({
  messages: z
    .array(z.object({ role: z.enum(["user", "assistant"]), content: z.array(contentBlock) }))
    .describe("Those before the one that is being answered, oldest first."),
});

const wireTurnReport = z.object({
  session_id: z.uuid(),
  turn_id: z.uuid(),
  outcome: z.enum(["completed", "interrupted", "failed"]),
  error: z.string().optional(),
  content: z.array(contentBlock),
  agent_session_id: z.string().optional(),
});

export const wireDesiredState = z.object({
  sandbox_id: z.string(),
  tenant: z.string(),
  volume_keys: z.record(z.string(), z.string()).optional().describe("Its volumes on the node, by name."),
  spec: z.looseObject({}).describe("As it was asked for."),
  closed_env: z.string().optional().describe("Why environment variables are not in it: they cannot be opened."),
  state: z.enum(SANDBOX_STATES),
  wanted: z.enum(SANDBOX_WANTS),
  version: z.int(),
  turns: z.array(wireTurn).default([]).describe("Messages that its agent is to answer."),
  recorded_batch: z.int().describe("The newest batch of this hold that was taken."),
});

export const wireBatch = z.object({
  number: z.int().min(1).describe("From 1, for each hold."),
  events: z
    .array(
      z.object({
        type: z.enum(SANDBOX_EVENT_TYPES),
        at_ms: amount,
        data: z.record(z.string(), z.unknown()),
        session_id: z.uuid().optional().describe("Of an event of one session."),
      }),
    )
    .max(MAX_EVENTS),
  state: z.object({ to: z.enum(SANDBOX_STATES), reason: z.string().optional() }).optional(),
  stats: z.record(z.string(), z.number()).optional(),
  known_version: z.int().optional().describe("The order that the node has: it is not told of its turns again."),
  turns: z.array(wireTurnReport).optional().describe("Those that have ended."),
  removed: z.literal(true).optional().describe("Everything of it was put away."),
});

export function toWireReport({
  capacity,
  bootId,
  keeps,
  unusedVolumes,
  removedVolumes,
  images,
  labels,
  ...node
}: NodeReport): z.input<typeof wireReport> {
  return {
    ...node,
    labels: { ...labels },
    images: [...images],
    boot_id: bootId,
    capacity: {
      cpu_millis: capacity.cpuMillis,
      memory_mb: capacity.memoryMb,
      disk_mb: capacity.diskMb,
      sandboxes: capacity.sandboxes,
    },
    ...(keeps === undefined ? {} : { keeps: [...keeps] }),
    ...(unusedVolumes === undefined ? {} : { unused_volumes: [...unusedVolumes] }),
    ...(removedVolumes === undefined ? {} : { removed_volumes: [...removedVolumes] }),
  };
}

export function reportOf(report: z.output<typeof wireReport>): NodeReport {
  const { capacity, boot_id: bootId, keeps, unused_volumes: unusedVolumes, ...rest } = report;
  const { removed_volumes: removedVolumes, ...node } = rest;
  const { cpu_millis: cpuMillis, memory_mb: memoryMb, disk_mb: diskMb, sandboxes } = capacity;
  return {
    ...node,
    bootId,
    capacity: { cpuMillis, memoryMb, diskMb, sandboxes },
    ...(keeps === undefined ? {} : { keeps }),
    ...(unusedVolumes === undefined ? {} : { unusedVolumes }),
    ...(removedVolumes === undefined ? {} : { removedVolumes }),
  };
}

export function toWireAnswer(answer: NodeAnswer): z.output<typeof wireAnswer> {
  const { drain, gateways, gone = [], goneVolumes = [], deletedVolumes = [] } = answer;
  const volumes = { gone_volumes: [...goneVolumes], deleted_volumes: [...deletedVolumes] };
  return { drain, gateways: [...gateways], gone: [...gone], ...volumes };
}

export function answerOf(wire: z.output<typeof wireAnswer>): NodeAnswer {
  const { gone_volumes: goneVolumes, deleted_volumes: deletedVolumes, ...answer } = wire;
  return { ...answer, goneVolumes, deletedVolumes };
}

export function toWireDesiredState(desired: DesiredState): z.output<typeof wireDesiredState> {
  const { sandboxId, tenant, volumeKeys, spec, closedEnv, state, wanted, version, recordedBatch } = desired;
  const turns = (desired.turns ?? []).map(toWireTurn);
  const wire = { sandbox_id: sandboxId, tenant, spec: { ...spec }, state, wanted, version, turns };
  return {
    ...wire,
    recorded_batch: recordedBatch,
    ...(volumeKeys === undefined ? {} : { volume_keys: { ...volumeKeys } }),
    ...(closedEnv === undefined ? {} : { closed_env: closedEnv }),
  };
}

/** The spec is the control plane's, which has checked it; what is undefined in it is absent on the wire. */
export function orderOf(wire: z.output<typeof wireDesiredState>): DesiredState {
  const { sandbox_id: sandboxId, recorded_batch: recordedBatch, closed_env: closedEnv, spec, turns } = wire;
  const { tenant, volume_keys: volumeKeys, state, wanted, version } = wire;
  return {
    tenant,
    state,
    wanted,
    version,
    ...(volumeKeys === undefined ? {} : { volumeKeys }),
    turns: turns.map(turnOf),
    closedEnv,
    sandboxId,
    recordedBatch,
    spec: spec as unknown as SandboxSpec,
  };
}

export function toWireHistory(messages: readonly TurnMessage[]): z.output<typeof wireHistory> {
  return { messages: messages.map(({ role, content }) => ({ role, content: [...content] })) };
}

function toWireTurn(turn: Turn): z.input<typeof wireTurn> {
  return {
    session_id: turn.sessionId,
    turn_id: turn.turnId,
    content: [...turn.content],
    messages_before: turn.messagesBefore,
    interrupted: turn.isInterrupted,
    ...(turn.agentSessionId === undefined ? {} : { agent_session_id: turn.agentSessionId }),
  };
}

function turnOf(wire: z.output<typeof wireTurn>): Turn {
  const { session_id: sessionId, turn_id: turnId, agent_session_id: agentSessionId, content } = wire;
  const { messages_before: messagesBefore, interrupted: isInterrupted } = wire;
  return { sessionId, turnId, content, agentSessionId, messagesBefore, isInterrupted };
}

function toWireReportOfTurn({
  sessionId,
  turnId,
  agentSessionId,
  content,
  ...rest
}: TurnReport): z.input<typeof wireTurnReport> {
  return {
    ...rest,
    session_id: sessionId,
    turn_id: turnId,
    content: [...content],
    ...(agentSessionId === undefined ? {} : { agent_session_id: agentSessionId }),
  };
}

function reportOfTurn(wire: z.output<typeof wireTurnReport>): TurnReport {
  const { session_id: sessionId, turn_id: turnId, agent_session_id: agentSessionId, error, outcome, content } = wire;
  return {
    sessionId,
    turnId,
    outcome,
    content,
    ...(error === undefined ? {} : { error }),
    ...(agentSessionId === undefined ? {} : { agentSessionId }),
  };
}

function toWireEvent({ type, atMs, data, sessionId }: NewSandboxEvent): z.input<typeof wireBatch>["events"][number] {
  const event = { type, at_ms: atMs, data: { ...data } };
  return sessionId === undefined ? event : { ...event, session_id: sessionId };
}

export function toWireBatch(batch: SandboxBatch): z.input<typeof wireBatch> {
  const { number, events, state, stats, turns, removed, knownVersion } = batch;
  return {
    number,
    events: events.map(toWireEvent),
    ...(state === undefined ? {} : { state }),
    ...(stats === undefined ? {} : { stats: { ...stats } }),
    ...(knownVersion === undefined ? {} : { known_version: knownVersion }),
    ...(turns === undefined ? {} : { turns: turns.map(toWireReportOfTurn) }),
    ...(removed === undefined ? {} : { removed }),
  };
}

export function batchOf({ events, state, stats, ...batch }: z.output<typeof wireBatch>): SandboxBatch {
  return {
    number: batch.number,
    events: events.map(({ type, at_ms: atMs, data, session_id: sessionId }) => ({ type, atMs, data, sessionId })),
    ...(state === undefined
      ? {}
      : { state: state.reason === undefined ? { to: state.to } : { to: state.to, reason: state.reason } }),
    ...(stats === undefined ? {} : { stats }),
    ...(batch.known_version === undefined ? {} : { knownVersion: batch.known_version }),
    ...(batch.turns === undefined ? {} : { turns: batch.turns.map(reportOfTurn) }),
    ...(batch.removed === undefined ? {} : { removed: batch.removed }),
  };
}
