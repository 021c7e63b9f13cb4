import { whyNoSandboxes } from "../../costs/sandboxes.ts";
import { RESOURCE_LIMITS } from "../../sandbox/limits.ts";
import { withServer } from "../../sandbox/with-server.ts";
import { residentBytesOfSandboxes } from "../../support/sandbox-processes.ts";
import { MIB } from "../../support/report.ts";
import { repeated } from "../catalog-figures.ts";
import { defineCurve } from "../curve.ts";

export const curve = defineCurve({
  name: "sandboxes",
  question: "What do one more sandbox, a command in it and its memory cost when many run on the node?",
  x: { unit: "sandboxes", sizes: [1, 4, 16, 64], few: [1, 3] },
  series: {
    start: {
      unit: "ms",
      doc: "one more, from asking for it to its running, without any that was prepared",
      promise: "flat",
    },
    command: { unit: "ms", doc: "`echo` in one of them, with all its events", promise: "flat" },
    memory: {
      unit: "MiB/sandbox",
      doc: "of the server and of sandboxes that are idle",
      promise: "flat",
      because:
        "the first is counted after another one has run, whose memory the server still has; from four on it falls",
    },
  },
  lacks: whyNoSandboxes,
  open: async ({ brief, signal }) => {
    const at = (size: number) =>
      withServer({ warmPool: 0 }, async (server, client) => {
        const create = () => client.create({ resource_limits: RESOURCE_LIMITS });
        // The first of a server prepares the image.
        await client.remove(await create());
        const residentBytes = () => server.memory().residentBytes + residentBytesOfSandboxes();
        const before = residentBytes();
        const ids: string[] = [];
        while (ids.length < size) {
          signal.throwIfAborted();
          ids.push(await create());
        }
        const memory = [Math.max(1, residentBytes() - before) / size / MIB];
        const [times, one = ""] = [brief ? 2 : 9, ids[0]];
        await client.exec(one, ["/bin/echo", "hello"]);
        const command = await repeated(times, () => client.exec(one, ["/bin/echo", "hello"]));
        const more: string[] = [];
        const start = await repeated(times, async () => void more.push(await create()));
        for (const id of [...more, ...ids]) await client.remove(id);
        return { start, command, memory };
      });
    return { at };
  },
});
