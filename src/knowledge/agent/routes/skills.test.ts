import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Skills } from "../../skills/skills.ts";
import { agentRoutes } from "./routes.test-kit.ts";
import { SKILL_ROUTES } from "./skills.ts";

const PATH = "/v1/agent/skills";
const SHIPPED = ["engine-sql", "engine-time-travel", "engine-memory", "engine-deploy"];
const routes = agentRoutes();
const home = mkdtempSync(join(tmpdir(), "skill-routes-"));

beforeAll(async () => {
  const files = [
    ["own", "---\nname: own\ndescription: Ours.\n---\nDo it."],
    ["bad", "nothing"],
  ] as const;
  for (const [name, text] of files) {
    mkdirSync(join(home, "skills", name), { recursive: true });
    writeFileSync(join(home, "skills", name, "SKILL.md"), text);
  }
  const skills = new Skills({ ...routes, home, directory: join(home, "nowhere") });
  await routes.serve(SKILL_ROUTES, { skills });
});
afterAll(async () => {
  await routes.close();
  rmSync(home, { recursive: true, force: true });
});

test("skills are listed with what is wrong with them, and without paths", async () => {
  const { status, body } = await routes.call("ann", "GET", PATH);
  expect(status).toBe(200);
  const listed = body["skills"] as { name: string }[];
  expect(listed.map(({ name }) => name)).toEqual([...SHIPPED, "bad", "own"]);
  expect(listed.slice(4)).toEqual([
    {
      name: "bad",
      description: null,
      source: "home",
      enabled: false,
      problems: [expect.stringContaining("no front matter")],
    },
    { name: "own", description: "Ours.", source: "home", enabled: false, problems: [] },
  ]);
  expect(body["problems"]).toEqual(["directory: the folder cannot be read: ENOENT"]);
  expect(JSON.stringify(body)).not.toContain(home);
});

test("the enabled set is replaced as a whole", async () => {
  const enabled = `${PATH}/enabled`;
  expect((await routes.call("ann", "GET", enabled)).body).toEqual({ skills: SHIPPED });
  expect(await routes.call("ann", "PUT", enabled, { skills: ["own", "engine-sql"] })).toMatchObject({
    status: 200,
    body: { skills: ["own", "engine-sql"] },
  });
  expect((await routes.call("bob", "GET", enabled)).body).toEqual({ skills: ["engine-sql", "own"] });
  const refused = [
    [{ skills: ["own", "ow"] }, '"ow"'],
    [{ skills: ["bad"] }, "no front matter"],
    [{ skills: "own" }, "skills"],
    [{ skills: [1] }, "skills"],
    [{ skills: [], more: 1 }, "more"],
    [{}, "skills"],
    [{ skills: Array.from({ length: 201 }, (_, i) => `s-${i}`) }, "skills"],
  ] as const;
  for (const [json, named] of refused) {
    const { status, code, body } = await routes.call("ann", "PUT", enabled, json);
    expect([status, code]).toEqual([400, "bad_request_body"]);
    expect(JSON.stringify(body)).toContain(named.replaceAll('"', '\\"'));
  }
  expect((await routes.call("bob", "GET", enabled)).body).toEqual({ skills: ["engine-sql", "own"] });
  expect(await routes.audit.list({ limit: 5 })).toMatchObject([{ actor: "ann", action: "agent.skills" }]);
});
