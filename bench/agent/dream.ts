import { fileURLToPath } from "node:url";
import { startScriptedProvider } from "../../src/knowledge/agent/engines/scripted-provider.test-kit.ts";
import { readArguments } from "../support/arguments.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";

/**
 * Question: how long does a dream over many events take beyond the model, and how much more does the server hold for it?
 *
 *     node bench/agent/dream.ts [--events 10000]
 *
 * The model is a scripted one without delay: of each part of the events it proposes one fact. What it costs to think is not
 * measured, and no dream's worth is.
 */
const OPTIONS = { events: { type: "string", default: "10000" } } as const;

const JSON_TYPE = { "Content-Type": "application/json" };

export async function main(args: readonly string[]): Promise<void> {
  const events = readArguments(args, OPTIONS).count("events");
  console.log(machine());
  let asked = 0;
  const provider = await startScriptedProvider(() => {
    const content = `Fact number ${++asked} of what was seen`;
    const proposal = { reason: "The event says so.", evidence: ["e1"], action: "add", content };
    return { toolCalls: [{ name: "propose_memories", input: { reasoning: "As seen.", proposals: [proposal] } }] };
  });
  const server = await startBenchServer({ env: { ENGINE_LOCALMODEL_HOST: provider.url } });
  try {
    await prepare(server, events);
    const before = server.memory().residentBytes;
    server.resetPeak();
    const [cpu, startedMs] = [server.cpuSeconds(), performance.now()];
    const run = await dreamOf(server);
    const tookMs = performance.now() - startedMs;
    if (run["events_scanned"] !== events || run["memories_written"] !== asked) {
      throw new Error(`the run is not what it should be: ${JSON.stringify(run)}`);
    }
    printTable(
      ["a dream", "s", "CPU s", "requests", "MiB more at its peak"],
      [
        [
          `${events} events`,
          shown(tookMs / 1000),
          shown(server.cpuSeconds() - cpu),
          String(asked),
          shown((server.memory().peakBytes - before) / MIB),
        ],
      ],
    );
  } finally {
    await server.stop();
    await provider.close();
  }
}

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

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
