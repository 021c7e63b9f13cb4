import { expect, it } from "vitest";
import { createRequest, toRequest } from "./create-request.ts";
import { checkRepositories } from "./check-repositories.ts";

const SOURCE = "https://git.example/a/tools.git";

function refusalOf(skills: unknown, body: Record<string, unknown> = {}): string | undefined {
  const { error } = createRequest.safeParse({ agent_provider: "codex", skills, ...body });
  const issue = error?.issues[0];
  return issue === undefined ? undefined : `${issue.path.map(String).join(".")}: ${issue.message}`;
}

it("come from repositories, as those do that are cloned", () => {
  for (const source of [
    "ext::sh -c id",
    "file:///etc",
    "git@git.example:a/b",
    "https://u:p@git.example/a",
    "./a",
    "",
  ]) {
    expect([source, refusalOf([{ source }])]).toEqual([
      source,
      expect.stringMatching(/^skills\.0\.source: accepted are https/),
    ]);
  }
  for (const ref of ["-f", "a b", "a..b", ""]) {
    expect([ref, refusalOf([{ source: SOURCE, ref }])]).toEqual([ref, expect.stringMatching(/^skills\.0\.ref: /)]);
  }
  const spec = createRequest.parse({ agent_provider: "codex", skills: [{ source: SOURCE }] });
  const check = (hosts: string[], plainHttp = false) => checkRepositories(spec, { hosts, plainHttp });
  expect(() => check(["git.example"])).not.toThrow();
  expect(() => check(["other.example"])).toThrow(/^skills\.0\.source: its host is neither/);
  expect(refusalOf([{ source: SOURCE }], { network: { enabled: false } })).toMatch(/^network\.enabled: /);
  expect(spec.network.enabled).toBe(true);
});

it("are folders of them, with names of their own that are no paths", () => {
  for (const path of ["..", "a/../b", "/etc", "a//b", ".", "a/", ".git/hooks", "a/.GIT", "a\n", ""]) {
    expect([path, refusalOf([{ source: SOURCE, path }])]).toEqual([path, expect.stringMatching(/^skills\.0\.path: /)]);
  }
  for (const name of ["..", ".hidden", "-x", "a/b", "a b", "", "a".repeat(65)]) {
    expect([name, refusalOf([{ source: SOURCE, name }])]).toEqual([name, expect.stringMatching(/^skills\.0\.name: /)]);
  }
  const namesOf = (...skills: unknown[]) =>
    createRequest.parse({ agent_provider: "codex", skills }).skills?.map(({ name }) => name);
  expect(namesOf({ source: SOURCE }, { source: SOURCE, path: "skills/pdf" }, { source: SOURCE, name: "x" })).toEqual([
    "tools",
    "pdf",
    "x",
  ]);
  expect(refusalOf([{ source: SOURCE, path: "my skill" }])).toMatch(/^skills\.0\.name: it has to be given/);
  expect(refusalOf([{ source: SOURCE }, { source: SOURCE, path: "b/tools" }])).toBe(
    "skills.1.name: another skill has the same name",
  );
});

it("are shown as they would be asked for", () => {
  const skills = [{ source: SOURCE }, { source: SOURCE, ref: "v1", path: "skills/pdf", name: "pdf-2" }];
  const spec = createRequest.parse({ agent_provider: "codex", skills });
  const shown = toRequest(spec);
  expect(shown["skills"]).toEqual([
    { source: SOURCE, ref: null, path: null, name: "tools" },
    { source: SOURCE, ref: "v1", path: "skills/pdf", name: "pdf-2" },
  ]);
  expect(createRequest.parse(shown)).toEqual(spec);
});
