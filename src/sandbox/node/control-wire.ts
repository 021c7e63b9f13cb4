import { z } from "zod";
import type { SandboxSpec } from "../spec.ts";
import { SANDBOX_EVENT_TYPES } from "../events/event.ts";
import { SANDBOX_STATES, SANDBOX_WANTS } from "../states.ts";
import type { NodeAnswer, NodeReport, SandboxBatch, SandboxOrder } from "./control-port.ts";

/** `ControlPort` as JSON, for the routes of nodes and for the nodes that call them. */

const MAX_NAME_CHARS = 200;
const MAX_IMAGES = 1_000;
const MAX_KEPT = 10_000;
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

export const wireReport = z.strictObject({
  name: text,
  runtime: text,
  labels: z.record(text, text),
  images: z.array(text).max(MAX_IMAGES),
  capacity: z.strictObject({ cpu_millis: amount, memory_mb: amount, disk_mb: amount, sandboxes: amount }),
  boot_id: text.describe("Another one after each start of the machine."),
  keeps: z.array(z.uuid()).max(MAX_KEPT).optional().describe("Sandboxes of which only a disk is here."),
});

export const wireAnswer = z.object({
  drain: z.boolean().describe("It is to take no more sandboxes."),
  gateways: z.array(z.string()).describe("To each of these it is to keep a connection."),
  gone: z.array(z.string()).describe("Those of `keeps` that are no more."),
});

export const wireOrder = z.object({
  sandbox_id: z.string(),
  tenant: z.string(),
  spec: z.looseObject({}).describe("As it was asked for."),
  state: z.enum(SANDBOX_STATES),
  wanted: z.enum(SANDBOX_WANTS),
  version: z.int(),
  recorded_batch: z.int().describe("The newest batch of this hold that was taken."),
});

export const wireBatch = z.strictObject({
  number: z.int().min(1).describe("From 1, for each hold."),
  events: z
    .array(
      z.strictObject({
        type: z.enum(SANDBOX_EVENT_TYPES),
        at_ms: amount,
        data: z.record(z.string(), z.unknown()),
      }),
    )
    .max(MAX_EVENTS),
  state: z.strictObject({ to: z.enum(SANDBOX_STATES), reason: z.string().optional() }).optional(),
  stats: z.record(z.string(), z.number()).optional(),
  removed: z.literal(true).optional().describe("Everything of it was put away."),
});

export function toWireReport({
  capacity,
  bootId,
  keeps,
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
  };
}

export function reportOf({ capacity, boot_id: bootId, keeps, ...node }: z.output<typeof wireReport>): NodeReport {
  const { cpu_millis: cpuMillis, memory_mb: memoryMb, disk_mb: diskMb, sandboxes } = capacity;
  return {
    ...node,
    bootId,
    capacity: { cpuMillis, memoryMb, diskMb, sandboxes },
    ...(keeps === undefined ? {} : { keeps }),
  };
}

export function toWireAnswer({ drain, gateways, gone = [] }: NodeAnswer): z.output<typeof wireAnswer> {
  return { drain, gateways: [...gateways], gone: [...gone] };
}

export function toWireOrder(order: SandboxOrder): z.output<typeof wireOrder> {
  const { sandboxId, tenant, spec, state, wanted, version, recordedBatch } = order;
  return { sandbox_id: sandboxId, tenant, spec: { ...spec }, state, wanted, version, recorded_batch: recordedBatch };
}

/** The spec is the control plane's, which has checked it; what is undefined in it is absent on the wire. */
export function orderOf(wire: z.output<typeof wireOrder>): SandboxOrder {
  const { sandbox_id: sandboxId, recorded_batch: recordedBatch, spec, ...order } = wire;
  return { ...order, sandboxId, recordedBatch, spec: spec as unknown as SandboxSpec };
}

export function toWireBatch({ number, events, state, stats, removed }: SandboxBatch): z.input<typeof wireBatch> {
  return {
    number,
    events: events.map(({ type, atMs, data }) => ({ type, at_ms: atMs, data: { ...data } })),
    ...(state === undefined ? {} : { state }),
    ...(stats === undefined ? {} : { stats: { ...stats } }),
    ...(removed === undefined ? {} : { removed }),
  };
}

export function batchOf({ events, state, stats, ...batch }: z.output<typeof wireBatch>): SandboxBatch {
  return {
    number: batch.number,
    events: events.map(({ type, at_ms: atMs, data }) => ({ type, atMs, data })),
    ...(state === undefined
      ? {}
      : { state: state.reason === undefined ? { to: state.to } : { to: state.to, reason: state.reason } }),
    ...(stats === undefined ? {} : { stats }),
    ...(batch.removed === undefined ? {} : { removed: batch.removed }),
  };
}
