import { sleep, type Clock } from "../../../core/clock.ts";
import { untilAborted } from "../../../core/concurrency.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../../../fabric/handler.ts";
import { holdOf } from "../../../fabric/job.ts";
import type { Egress } from "../../network/egress/egress.ts";
import { CA_BUNDLE } from "../../network/egress/environment.ts";
import { RuntimeError, type Machine, type Runtime } from "../../runtime/runtime.ts";
import type { NetworkSpec, ResourceLimits } from "../../contract/spec.ts";
import { IMAGE_BUILD_KIND, imageBuildPayload, type ImageBuildPayload } from "../../contract/images/build-job.ts";
import { runSteps, StepError } from "./build-steps.ts";
import { ArchiveError } from "../../../io/tar/archive-error.ts";
import type { ImageLayer } from "../../contract/images/image.ts";
import type { ImagePort } from "../../contract/images/image-port.ts";
import { writeLayer } from "../../runtime/images/layer-archive.ts";

export type ImageBuilderOptions = {
  runtime: Runtime;
  egress: Egress;
  images: ImagePort;
  clock: Clock;
  newId: IdSource;
  log: Log;
  limits: ResourceLimits;
  /** What a build reaches; nothing else. */
  registryHosts: readonly string[];
  timeoutMs: number;
};

/** The machine's lease ends that much before the job's, for the way to the supervisor. */
const LEASE_MARGIN_MS = 500;
const LATE_MS = 10_000;
const HOSTNAME = "image-build";
/** Written for each machine anew. */
const LEFT_OUT = ["etc/hostname", "etc/hosts", CA_BUNDLE.slice(1)];

/**
 * Builds images, each in a machine like those of sandboxes, which goes with the build: nothing of a template is run, read
 * or written anywhere else. What the steps changed on the machine's disk becomes a layer in the object store.
 */
export function imageBuildHandler(options: ImageBuilderOptions): JobHandler {
  return {
    kind: IMAGE_BUILD_KIND,
    run: async (job) => {
      const { data } = imageBuildPayload.safeParse(job.payload);
      if (data === undefined) throw new JobFailure({ error: "the payload is none of an image build" });
      try {
        return { layer: await build(options, job, data) };
      } catch (error) {
        throw failureOf(error);
      }
    },
  };
}

/** What is about the template is for good; what is about this node or this moment may go better another time. */
function failureOf(error: unknown): unknown {
  if (error instanceof StepError || error instanceof ArchiveError) return new JobFailure({ error: error.message });
  if (!(error instanceof RuntimeError)) return error;
  const retryable = error.code !== "unknown_image" && error.code !== "not_runnable";
  return new JobFailure({ error: error.message, retryable });
}

async function build(options: ImageBuilderOptions, job: RunningJob, payload: ImageBuildPayload): Promise<ImageLayer> {
  const { runtime, newId, log } = options;
  const id = newId();
  const { id: baseId, ...base } = payload.base;
  const release = baseId === undefined ? () => undefined : await runtime.loadImage({ ...base, id: baseId });
  try {
    await inMachine(options, job, { id, payload });
    job.signal.throwIfAborted();
    return await pack(options, job, { id, payload });
  } finally {
    release();
    await runtime.remove(id).catch((error: unknown) => {
      log.warn({ machine: id, reason: messageOf(error) }, "the machine of an image build could not be removed");
    });
  }
}

type Build = { id: string; payload: ImageBuildPayload };

/** Resolves when the template is on the machine's disk, and the machine has ended. */
async function inMachine(options: ImageBuilderOptions, job: RunningJob, { id, payload }: Build): Promise<void> {
  const { runtime, egress, clock, limits, registryHosts, timeoutMs } = options;
  const { base, template } = payload;
  const network: NetworkSpec = { enabled: true, allowedHosts: registryHosts, dnsServers: [] };
  const leaseMs = (untilMs: number) => Math.max(1, untilMs - clock.monotonicMs() - LEASE_MARGIN_MS);
  const machine = await runtime.create({
    id,
    image: base.id ?? base.base,
    limits,
    network: { enabled: true },
    volumes: [],
    hostname: HOSTNAME,
    env: { ...egress.environment(network), ...base.environment, ...template.environment },
    keepsDisk: true,
    leaseMs: leaseMs(job.lease.untilMs),
    // For the case that nobody is there to say it.
    deadlineMs: timeoutMs + LATE_MS,
  });
  // One that cannot be renewed has ended, which is seen below.
  job.lease.onRenewed((untilMs) => void machine.renew(leaseMs(untilMs)).catch(() => undefined));
  const proxy = egress.open(machine, network);
  const over = new AbortController();
  try {
    const steps = runSteps(machine, template, {
      certificates: egress.certificates,
      newId: options.newId,
      say: (line) => job.log("info", line),
    });
    await untilAborted(Promise.race([steps, endOf(machine), tooLong(options, over.signal)]), job.signal);
    await machine.stop();
  } finally {
    over.abort();
    proxy.close();
  }
}

/** Rejects when the time is over, and when it does not matter any more. */
async function tooLong({ clock, timeoutMs }: ImageBuilderOptions, signal: AbortSignal): Promise<never> {
  await sleep(clock, timeoutMs, signal);
  throw new StepError(`the build took longer than ${timeoutMs / 1_000} s`);
}

/** Never resolves. */
async function endOf(machine: Machine): Promise<never> {
  const end = await machine.ended;
  // While it is stopped, nobody waits for this any more.
  const why = end.cause === "died" ? end.reason : end.cause;
  throw new EngineError("unavailable", `the machine of the build ended: ${why}`);
}

async function pack(
  { runtime, images, limits }: ImageBuilderOptions,
  job: RunningJob,
  { id, payload }: Build,
): Promise<ImageLayer> {
  job.log("info", "packing what was changed");
  const stopped = await runtime.openStopped(id);
  if (stopped === undefined) throw new EngineError("unavailable", "the disk of the build has gone");
  try {
    const { changes, path: merged, firstHostId } = stopped;
    const hold = holdOf(job);
    const packed = await writeLayer(
      { changes, merged, firstHostId, maxBytes: limits.diskMb * 1024 * 1024, leaveOut: LEFT_OUT },
      async (part, bytes) => {
        job.signal.throwIfAborted();
        await images.write(hold, part, bytes);
      },
    );
    return { buildId: payload.buildId, fence: job.fence, ...packed };
  } finally {
    await stopped.release();
  }
}
