import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { startScriptedProvider } from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { MIB } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

export const benchmark = defineBenchmark({
  name: "agent/dream",
  question:
    "How long does a dream over many events take beyond the model, and how much more does the server hold for it?",
  notMeasured:
    "A model's time, and any dream's worth: the model is scripted, without delay, in the measuring process, and of each " +
    "part of the events it proposes one fact.",
  options: z.strictObject({
    events: z.coerce.number().int().positive().default(10_000).describe("that a server, a new one each round, has"),
  }),
  measures: {
    took: { unit: "s", better: "less", doc: "from asking for it until it is done" },
    cpu: { unit: "CPU s", better: "less", doc: "of the server" },
    requests: { unit: "requests", better: "less", doc: "to the model" },
    above: { unit: "MiB", better: "less", doc: "that the server holds more at its peak" },
  },
  rounds: 5,
  startsServer: true,
  open: async ({ events }, { entry }) => {
    let asked = 0;
    const provider = await startScriptedProvider(() => {
      const content = `Fact number ${++asked} of what was seen`;
      const proposal = { reason: "The event says so.", evidence: ["e1"], action: "add", content };
      return { toolCalls: [{ name: "propose_memories", input: { reasoning: "As seen.", proposals: [proposal] } }] };
    });
    const round = async () => {
      const server = await startBenchServer({ env: { ENGINE_LOCALMODEL_HOST: provider.url }, entry });
      try {
        asked = 0;
        const figures = await measureDream(server, events);
        if (figures.written !== asked) throw new Error(`${figures.written} memories of ${asked} were written`);
        const { took, cpu, above } = figures;
        return { took, cpu, above, requests: asked };
      } finally {
        await server.stop();
      }
    };
    return { sides: [{ name: "engine", round }], close: () => provider.close() };
  },
});

async function measureDream(server: BenchServer, events: number) {
  await prepare(server, events);
  const before = server.memory().residentBytes;
  server.resetPeak();
  const [cpuBefore, startedMs] = [server.cpuSeconds(), systemClock.monotonicMs()];
  const run = await dreamOf(server);
  const took = (systemClock.monotonicMs() - startedMs) / 1_000;
  if (run["events_scanned"] !== events) throw new Error(`the run is not what it should be: ${JSON.stringify(run)}`);
  const above = (server.memory().peakBytes - before) / MIB;
  return { took, above, cpu: server.cpuSeconds() - cpuBefore, written: Number(run["memories_written"]) };
}

const JSON_TYPE = { "Content-Type": "application/json" };

async function prepare({ url }: BenchServer, events: number): Promise<void> {
  const rows = Array.from({ length: events }, (_, n) => {
    const body = `The service s${n % 40} answered request ${n} in ${n % 977} ms and said that all was well with it`;
    return `${JSON.stringify({ label: "log", body })}\n`;
  });
  await accepted(
    `${url}/v1/ingest`,
    "POST",
    { "Content-Type": "application/x-ndjson", "X-Table": "firehose" },
    rows.join(""),
  );
  const engine = { kind: "localmodel", model: "scripted-1", credential_id: null, host: null, extras: {} };
  await accepted(`${url}/v1/agent/engine`, "PUT", JSON_TYPE, JSON.stringify(engine));
  const dreaming = { max_events: events, max_tokens: 10_000_000, max_writes: 1_000, max_minutes: 10 };
  await accepted(`${url}/v1/agent/memory/settings`, "PUT", JSON_TYPE, JSON.stringify({ dreaming }));
}

async function dreamOf({ url }: BenchServer): Promise<Record<string, unknown>> {
  await accepted(`${url}/v1/agent/memory/dreaming/run`, "POST", JSON_TYPE, "{}");
  for (;;) {
    const { runs } = (await accepted(`${url}/v1/agent/memory/dreaming/runs?kind=dreaming`, "GET", {})) as {
      runs: Record<string, unknown>[];
    };
    const [run] = runs;
    if (run?.["status"] === "done") return run;
    if (run?.["status"] === "failed") throw new Error(`the dream failed: ${JSON.stringify(run)}`);
    await new Promise((resolve) => void setTimeout(resolve, 20));
  }
}

async function accepted(url: string, method: string, headers: Record<string, string>, body?: string): Promise<unknown> {
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`answered ${response.status}: ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}
