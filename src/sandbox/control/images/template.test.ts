import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AGENT_PROVIDERS } from "../../contract/agents/providers.ts";
import { readTemplate } from "./template.ts";
import type { Template } from "../../contract/images/template.ts";

const read = (source: string, given: Record<string, string> = {}): Template =>
  readTemplate(source, { provider: "codex", given });

describe("a template", () => {
  it("has a value for every field", () => {
    expect(read('base = "debian"')).toEqual({
      base: "debian",
      packages: { apt: [], npm: [], pip: [], cargo: [] },
      files: [],
      commands: [],
      environment: {},
    });
  });

  it("puts variables in their places, those of the request before its own, and looks into none", () => {
    const source = `
base = "{{from}}"
[variables]
from = "debian"
version = "1"
text = "{{from}}"
[packages]
npm = ["left-pad@{{version}}"]
[[files]]
path = "/opt/{{version}}"
content = "a {{text}} { {x} } {{version}}"
[[commands]]
run = "echo {{version}}"
user = "agent"
[environment]
V = "{{version}}"
`;
    expect(read(source, { version: "2" })).toEqual({
      base: "debian",
      packages: { apt: [], npm: ["left-pad@2"], pip: [], cargo: [] },
      files: [
        {
          path: "/opt/2",
          contentBase64: Buffer.from("a {{from}} { {x} } 2").toString("base64"),
          mode: 0o644,
          user: "root",
        },
      ],
      commands: [{ run: "echo 2", user: "agent" }],
      environment: { V: "2" },
    });
  });

  it("gives back any content", () => {
    const texts = fc
      .string({ unit: "grapheme", maxLength: 200 })
      .filter((text) => text.isWellFormed() && !text.includes("\0"));
    const source = 'base = "host"\n[variables]\nv = ""\n[[files]]\npath = "/opt/a"\ncontent = "{{v}}"\n';
    fc.assert(
      fc.property(texts, (content) => {
        const [file] = read(source, { v: content }).files;
        expect(Buffer.from(file?.contentBase64 ?? "", "base64").toString()).toBe(content);
      }),
    );
  });

  it.each([
    ['base = "x', /^template_source: line 1, column \d+: /],
    ["", /^template_source\.base: /],
    ['base = "host"\nbases = 1', /^template_source: .*bases/],
    ['base = "host"\n[[commands]]\nruns = "x"', /^template_source\.commands\[0\]/],
    ['base = "host"\n[[commands]]\nrun = "{{x}}"', /^template_source\.commands\[0\]\.run: there is no variable "x"/],
    ['base = "host"\n[[files]]\npath = "etc/x"\ncontent = ""', /^template_source\.files\[0\]\.path: /],
    ['base = "host"\n[[files]]\npath = "/etc/../x"\ncontent = ""', /^template_source\.files\[0\]\.path: /],
    ['base = "host"\n[[files]]\npath = "/proc/x"\ncontent = ""', /^template_source\.files\[0\]\.path: /],
    ['base = "host"\n[[files]]\npath = "/x"', /^template_source\.files\[0\]: accepted is one of content/],
    ['base = "host"\n[[files]]\npath = "/x"\nsource = "/etc/shadow"', /^template_source\.files\[0\]: /],
    ['base = "host"\n[[files]]\npath = "/x"\ncontent = ""\nmode = "4755"', /^template_source\.files\[0\]\.mode: /],
    ['base = "host"\n[environment]\n"A=B" = "x"', /^template_source\.environment/],
    ['base = "host"\n[packages]\ngem = ["x"]', /^template_source\.packages: /],
    ['base = "host"\n[packages]\napt = ["-o=Debug"]', /^template_source\.packages\.apt\[0\]: /],
    ['base = "host"\n[packages]\nnpm = ["../x"]', /^template_source\.packages\.npm\[0\]: /],
    ['base = "host"\n[packages]\nnpm = ["git+https://x.example/y"]', /^template_source\.packages\.npm\[0\]: /],
    ['base = "host"\n[packages]\npip = ["x @ https://y"]', /^template_source\.packages\.pip\[0\]: /],
    ['base = "host"\n[packages]\ncargo = ["--git"]', /^template_source\.packages\.cargo\[0\]: /],
    ['base = "host"\n[variables]\nx = 1', /^template_source\.variables\.x: /],
    [`base = "host"\n# ${"x".repeat(70_000)}`, /^template_source: accepted are 65536 characters/],
  ])("is refused where it is wrong: %#", (source, message) => {
    expect(() => read(source)).toThrow(
      expect.objectContaining({ code: "config_validation_error", message: expect.stringMatching(message) }),
    );
  });

  it("takes no variable that it does not declare", () => {
    expect(() => read('base = "host"', { x: "1" })).toThrow(
      "variables.x: the template has no such variable; it has none",
    );
  });

  it.each(AGENT_PROVIDERS)("is there for %s", (provider) => {
    const { base, packages } = readTemplate(undefined, { provider, given: {} });
    expect(base).toBe("debian");
    // The agent, at a version.
    expect(packages.npm.at(-1)).toMatch(/@\d+\.\d+\.\d+$/);
  });
});
