import { mkdir } from "node:fs/promises";
import { systemClock } from "../../../src/core/clock.ts";
import { appendEvents, addSandboxRow, line } from "../../../src/sandbox/control/events/log.test-kit.ts";
import { eventsAfter, newestLines } from "../../../src/sandbox/control/events/read-events.ts";
import { withCatalog } from "../../support/catalog.ts";
import { repeated } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

const BATCH = 500;
const SANDBOX = "bench";
/** More than all of them take: nothing is cut off. */
const QUOTA_BYTES = 2 ** 40;

export const curve = defineCurve({
  name: "session-events",
  question: "What do adding to the log of a sandbox and reading its end cost when the log is long?",
  x: { unit: "events", sizes: [1_000, 10_000, 100_000, 1_000_000], few: [500, 2_000] },
  series: {
    append: { unit: "ms", doc: "a hundred lines, in one transaction", promise: "flat" },
    follow: { unit: "ms", doc: "the newest hundred, by the number of the one before them", promise: "flat" },
    tail: { unit: "ms", doc: "the newest hundred lines", promise: "flat" },
  },
  open: async ({ folder, brief, signal }) => {
    await mkdir(folder, { recursive: true });
    let made = 0;
    const at = (size: number) =>
      withCatalog(folder, async ({ records }) => {
        const append = async (count: number) => {
          const lines = Array.from({ length: count }, () => line(`line ${made++} of a command`, systemClock.nowMs()));
          await appendEvents(records, SANDBOX, lines, QUOTA_BYTES);
        };
        if (made === 0) await addSandboxRow(records, SANDBOX);
        for (let left = size - made; left > 0; left -= BATCH) {
          signal.throwIfAborted();
          await append(Math.min(BATCH, left));
        }
        const times = brief ? 3 : 51;
        const asked = { afterSeq: made - NEWEST, limit: NEWEST };
        const follow = await repeated(times, async () => mustBe(await eventsAfter(records, SANDBOX, asked)));
        const upTo = { upToSeq: made, limit: NEWEST };
        const tail = await repeated(times, async () => mustBe(await newestLines(records, SANDBOX, upTo)));
        return { append: await repeated(times, () => append(NEWEST)), follow, tail };
      });
    return { at };
  },
});

const NEWEST = 100;

function mustBe({ length }: readonly unknown[]): void {
  if (length !== NEWEST) throw new Error(`${length} events were read`);
}
