import { afterEach, expect, it } from "vitest";
import { ManualClock } from "../../../core/clock.ts";
import { createLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import type { HostedKind } from "./engine.ts";
import { ModelMenus } from "./menus.ts";
import { AGENT_METRICS } from "../metrics.ts";
import {
  startScriptedProvider,
  type ScriptedProvider,
  type ScriptedProviderOptions,
} from "./scripted-provider.test-kit.ts";

const KEY = "sk-planted-0123456789abcdef";
const started: ScriptedProvider[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((provider) => provider.close()));
});

async function menusOf(kind: HostedKind, options: ScriptedProviderOptions) {
  const provider = await startScriptedProvider([], options);
  started.push(provider);
  const clock = new ManualClock();
  const metrics = createMetrics();
  const lines: string[] = [];
  const log = createLog("trace", { write: (line) => void lines.push(line) });
  const menus = new ModelMenus({ clock, log, metrics: AGENT_METRICS.of(metrics) });
  let keyUses = 0;
  const key = async () => {
    keyUses++;
    return kind === "localmodel" ? undefined : KEY;
  };
  const ask = (keyName = "") => menus.of({ kind, baseUrl: provider.url, keyName, key });
  const failures = async () => {
    const { values } = await AGENT_METRICS.of(metrics).menuFailures.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  };
  return { provider, clock, ask, failures, lines, keyUses: () => keyUses };
}

it("asks a provider once in ten minutes, whoever asks, and for each key by itself", async () => {
  const { provider, clock, ask, keyUses } = await menusOf("openai", { models: ["gpt-x", "whisper-1", "gpt-x"] });
  const menus = await Promise.all(Array.from({ length: 20 }, () => ask()));
  expect(menus.every((menu) => menu.source === "provider" && menu.models.join() === "gpt-x")).toBe(true);
  clock.advance(599_999);
  await ask();
  expect([provider.allRequests.length, keyUses()]).toEqual([1, 1]);
  expect(provider.allRequests[0]).toMatchObject({ path: "/v1/models", headers: { authorization: `Bearer ${KEY}` } });
  clock.advance(1);
  await ask();
  expect(provider.allRequests.length).toBe(2);
  await ask("another");
  expect(provider.allRequests.length).toBe(3);
});

it.each([
  ["a refusal", { listStatus: 401 }],
  ["a redirect", { listStatus: 302 }],
  ["another form", { listBody: '{"models": 7}' }],
  ["no JSON", { listBody: "<html>" }],
  ["too much", { listBody: JSON.stringify({ data: [{ id: "x".repeat(9_000_000) }] }) }],
])("shows the built-in list for a minute after %s", async (_, options) => {
  const { provider, clock, ask, failures, lines } = await menusOf("anthropic", options);
  expect(await ask()).toEqual(ModelMenus.builtIn("anthropic"));
  await ask();
  expect(provider.allRequests.length).toBe(1);
  expect(await failures()).toBe(1);
  expect(lines.join("\n")).toContain("gave no list");
  expect(lines.join("\n")).not.toContain(KEY);
  clock.advance(60_000);
  await ask();
  expect(provider.allRequests.length).toBe(2);
});

it("waits three seconds for a list", async () => {
  const { provider, clock, ask, failures } = await menusOf("anthropic", { listHangs: true });
  const asked = ask();
  await expect.poll(() => provider.allRequests.length).toBe(1);
  clock.advance(3_000);
  expect(await asked).toEqual(ModelMenus.builtIn("anthropic"));
  expect(await failures()).toBe(1);
  expect(await provider.allRequests[0]?.clientLeft).toBeGreaterThan(0);
});

it("takes what a local host has under tags, else the list that all the others have", async () => {
  const tagged = await menusOf("localmodel", { tags: ["duck:7b"], models: ["other"] });
  expect(await tagged.ask()).toEqual({ models: ["duck:7b"], source: "provider" });
  const untagged = await menusOf("localmodel", { models: ["other"] });
  expect(await untagged.ask()).toEqual({ models: ["other"], source: "provider" });
  const empty = await menusOf("localmodel", { tags: [] });
  expect(await empty.ask()).toEqual({ models: [], source: "provider" });
});

it("shows no name that is long, odd, or a key", async () => {
  const models = [
    "good",
    "",
    "x".repeat(201),
    "a\u001B[31m",
    `key-${KEY}`,
    ...Array.from({ length: 300 }, (_, n) => `m${n}`),
  ];
  const { ask } = await menusOf("anthropic", { models });
  const menu = await ask();
  expect(menu.models.slice(0, 2)).toEqual(["good", "m0"]);
  expect(menu.models.length).toBeLessThanOrEqual(200);
  expect(JSON.stringify(menu)).not.toContain(KEY);
});

it("asks again at once where the key could not be had for now", async () => {
  const { provider, ask } = await menusOf("anthropic", { models: ["m"] });
  const menus = new ModelMenus({
    clock: new ManualClock(),
    log: createLog("silent"),
    metrics: AGENT_METRICS.of(createMetrics()),
  });
  let isDown = true;
  const key = async () => {
    if (isDown) throw new Error("the catalog is down");
    return KEY;
  };
  const target = { kind: "anthropic", baseUrl: provider.url, keyName: "", key } as const;
  await expect(menus.of(target)).rejects.toThrow("down");
  isDown = false;
  expect(await menus.of(target)).toMatchObject({ source: "provider" });
  expect(await ask()).toMatchObject({ source: "provider" });
});
