import { afterEach, expect, it } from "vitest";
import { ADMIN } from "../../../auth/access.test-kit.ts";
import { AuditLog } from "../../../auth/audit.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { seededRandom } from "../../../core/random.ts";
import { HOSTED_KINDS } from "./engine.ts";
import { AgentEngines } from "./engines.ts";
import { engineFields } from "./fields.ts";
import { AGENT_METRICS } from "../metrics.ts";
import { startScriptedProvider, type ScriptedProvider } from "./scripted-provider.test-kit.ts";

/** What takes a clock that stands still; `roles/agent-keys.test.ts` has the rest, over HTTP. */

const ORIGIN = { caller: ADMIN, address: "", requestId: "" };
const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
});

async function enginesOn(provider: ScriptedProvider, baseUrl = provider.url) {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  ends.push(
    () => provider.close(),
    () => catalog.close(),
  );
  const { records } = catalog;
  const engines = new AgentEngines({
    records,
    audit: new AuditLog(records, uuidV7Source(clock, seededRandom(1))),
    keys: { find: async () => undefined, reveal: async () => undefined },
    settings: {
      agentEngineRole: "read",
      anthropicBaseUrl: baseUrl,
      anthropicApiKey: "sk-a",
      openaiBaseUrl: baseUrl,
      openaiApiKey: "sk-b",
      localModelHost: baseUrl,
      localModelHosts: undefined,
    },
    clock,
    log: silentLog,
    metrics: AGENT_METRICS.of(createMetrics()),
  });
  return { engines, clock };
}

it.each(HOSTED_KINDS)("a test of %s ends after 30 s, and the request with it", async (kind) => {
  const provider = await startScriptedProvider(() => ({ hang: true }));
  const { engines, clock } = await enginesOn(provider);
  const asked = engines.probe(engineFields.parse({ kind, model: "m" }), ORIGIN);
  await provider.reached(1);
  clock.advance(29_999);
  clock.advance(1);
  await expect(asked).rejects.toMatchObject({
    code: "engine_timeout",
    status: 504,
    message: "the engine did not answer within 30 s",
  });
  expect(await provider.requests[0]?.clientLeft).toBeGreaterThan(0);
});

it.each(HOSTED_KINDS)("a test of %s at an address where nobody is says so", async (kind) => {
  const provider = await startScriptedProvider();
  const { url } = provider;
  await provider.close();
  const { engines } = await enginesOn(await startScriptedProvider(), url);
  await expect(engines.probe(engineFields.parse({ kind, model: "m" }), ORIGIN)).rejects.toMatchObject({
    code: "engine_failed",
    status: 502,
    message: expect.stringMatching(/^the provider cannot be reached: connect ECONNREFUSED/),
  });
});
