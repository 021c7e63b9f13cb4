import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SHIPPED_SKILLS } from "../../src/knowledge/skills/shipped/all.ts";
import { skillText } from "../../src/knowledge/skills/shipped/skill.ts";
import { TOOLS } from "../../src/knowledge/mcp/tools.ts";
import { called, mcpClient, refusedCall } from "./mcp.test-kit.ts";
import { CalledServices } from "./services.test-kit.ts";

type Who = "ann" | "reader";

let services: CalledServices<Who>;
beforeAll(async () => {
  services = await CalledServices.start<Who>([
    ["ann", "write"],
    ["reader", "read"],
  ]);
  const rows = ["error", "login"].map((label) => JSON.stringify({ label, ms: 12.5, props: { user: { id: "u-1" } } }));
  const answer = await services.send("ann", "POST", "/v1/ingest", rows.join("\n"), {
    "Content-Type": "application/x-ndjson",
    "X-Table": "events",
    "X-Schema-Evolve": "true",
  });
  expect(answer.status).toBe(200);
});
afterAll(() => services.close());

const statements = SHIPPED_SKILLS.flatMap(({ name, body }) =>
  [...body.matchAll(/^~~~sql\n([^]*?)^~~~$/gm)].flatMap(([, lines = ""]) =>
    lines
      .trim()
      .split("\n")
      .map((sql) => [name, sql] as const),
  ),
);

test.each(statements)("%s: %s", async (_, sql) => {
  const answer = await services.send("reader", "POST", "/v1/query", sql);
  expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
});

test("the skills of the program say how something is queried, and name tools that are there", () => {
  expect(statements.length).toBeGreaterThan(10);
  const tools = new Set(TOOLS.map(({ name }) => name));
  for (const { body } of SHIPPED_SKILLS) {
    const named = [...body.matchAll(/\b(?:list|describe|query|recall|save|get|invalidate|forget|ingest)_[a-z]+\b/g)];
    expect(named.map(([name]) => name).filter((name) => !tools.has(name))).toEqual([]);
  }
});

describe("the tools of skills", () => {
  test("name the enabled ones and read them, long ones in parts", async () => {
    const client = await mcpClient(services.url, { era: "2026-07-28", token: services.tokens.get("reader") });
    try {
      expect(await called(client, "list_skills")).toEqual({
        skills: SHIPPED_SKILLS.map(({ name, description }) => ({ name, description })),
      });
      const [first] = SHIPPED_SKILLS;
      expect(await called(client, "read_skill", { name: "engine-sql" })).toEqual({ content: first?.body.trim() });
      expect(await refusedCall(client, "read_skill", { name: "engine-sq" })).toMatchObject({
        code: "not_found",
        suggestion: "engine-sql",
      });
      const body = "😀€\n".repeat(6_000).trim();
      const folder = join(services.home, "skills", "own");
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "SKILL.md"), skillText({ name: "own", description: "d", body }));
      // Nobody has enabled it.
      expect(await refusedCall(client, "read_skill", { name: "own" })).toMatchObject({ code: "not_found" });
    } finally {
      await client.close();
    }
  });
});
