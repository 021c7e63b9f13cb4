import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { OPTIONS } from "../src/config/options.ts";
import { optionRowsOf } from "../src/feature/collect.ts";
import { FEATURES } from "./features.ts";
import { referenceDocs } from "./reference.ts";

test("the generated documents are what the features say (npm run docs writes them)", async () => {
  const documents = await referenceDocs(FEATURES);
  const written = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8");
  expect(Object.fromEntries(Object.keys(documents).map((name) => [name, written(name)]))).toEqual(documents);
});

test("names of options are unique and follow one pattern, in all features", async () => {
  const rows = Object.values({ ...OPTIONS, ...(await optionRowsOf(FEATURES)) });
  const variables = rows.flatMap(({ env }) => env ?? []);
  const keys = rows.flatMap(({ toml }) => toml ?? []);
  expect([new Set(variables).size, new Set(keys).size]).toEqual([variables.length, keys.length]);
  for (const variable of variables.filter((name) => !OF_PROVIDERS.has(name)))
    expect(variable).toMatch(/^ENGINE_[A-Z]+(_[A-Z]+)*$/);
  for (const key of keys) expect(key).toMatch(/^[a-z]+\.[a-z]+(_[a-z]+)*$/);
});

test("settings that other programs of the kind bring along are accepted, and documented as without effect", async () => {
  const rows = Object.values(await optionRowsOf(FEATURES));
  const docs = new Map(rows.map(({ env, doc }) => [env, doc]));
  for (const name of ["ENGINE_MEMORY_QUEUE_DURABLE", "ENGINE_FILE_PROMOTE", "ENGINE_FILE_PROMOTE_POLL_SECS"])
    expect(docs.get(name)).toMatch(/^Accepted, and (always as|without effect)/);
});

/** Names under which every tool finds the keys of a provider. */
const OF_PROVIDERS: ReadonlySet<string> = new Set(["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]);
