import { messageOf } from "../../core/errors.ts";
import type { FeatureDeps, FeatureDuty } from "../../feature/feature.ts";
import { sandboxConfig } from "../contract/options.ts";
import { createEventRetention } from "./events/retention.ts";
import type { SandboxDeps } from "./routes/deps.ts";

const LOOK_EVERY_MS = 1_000;
/** A lost node is noticed soon, also when the process that looks is lost with it. */
const LOOK_LEASE_MS = 6_000;
const TIDY_EVERY_MS = 60_000;
/** For metrics. */
const COUNT_EVERY_MS = 10_000;

/** What one process of many does for all sandboxes, with the control plane that answers its routes. */
export function sandboxDuties(
  { records, fabric, clock, log, ...deps }: Pick<FeatureDeps, "config" | "records" | "fabric" | "clock" | "log">,
  { sandboxes, images }: Pick<SandboxDeps, "sandboxes" | "images">,
): FeatureDuty[] {
  const config = sandboxConfig(deps.config);
  let tenure: AbortSignal | undefined;
  let countedAtMs = Number.NEGATIVE_INFINITY;
  // Freed room is given away at once, not with the next look.
  sandboxes.signals.onRoom(() => {
    if (tenure?.aborted !== false) return;
    sandboxes.place().catch((error: unknown) => {
      log.warn({ reason: messageOf(error) }, "sandboxes that wait could not be placed; it will be tried again");
    });
  });
  const cut = createEventRetention(records, {
    mostEvents: config.sandboxEventsKept,
    quotaBytes: config.sandboxEventsBytes,
    maxAgeMs: (config.sandboxEventsRetentionSecs + config.artifactGcGraceSecs) * 1_000,
  });
  return [
    {
      name: "sandboxes",
      pollMs: LOOK_EVERY_MS,
      ttlMs: LOOK_LEASE_MS,
      duty: async ({ signal }) => {
        // Once for each lease: it lasts for many turns.
        if (signal !== tenure) signal.addEventListener("abort", () => sandboxes.hide(), { once: true });
        tenure = signal;
        if (clock.monotonicMs() - countedAtMs >= COUNT_EVERY_MS) {
          countedAtMs = clock.monotonicMs();
          await sandboxes.show();
        }
        if (!(await sandboxes.hasAny())) return;
        // More often than other jobs are: sandboxes of a lost node are not left waiting.
        await fabric.sweep();
        await sandboxes.settle();
        await sandboxes.settleAwaiting();
        await sandboxes.place();
      },
    },
    { name: "image builds", pollMs: LOOK_EVERY_MS, duty: () => images.look() },
    {
      name: "sandbox retention",
      pollMs: TIDY_EVERY_MS,
      duty: async ({ signal }) => {
        await cut({ signal });
        await sandboxes.expireVolumes();
        await sandboxes.forgetNodes();
      },
    },
    { name: "image sweep", pollMs: config.artifactGcPollSecs * 1_000, duty: () => images.tidy() },
  ];
}
