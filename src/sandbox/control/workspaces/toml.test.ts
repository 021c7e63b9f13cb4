import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../core/errors.ts";
import { workspaceFields, type WorkspaceContent } from "./fields.ts";
import { workspaceOfToml, workspaceToToml } from "./toml.ts";

const DOCUMENTED = `
[workspace]
name = "my-workspace"

[workspace.agent]
provider = "claude-code"

[[workspace.repositories]]
url = "https://github.com/org/repo.git"
branch = "main"

[[workspace.pre_commands]]
name = "install"
command = "npm"
args = ["install"]

[[workspace.skills]]
source = "https://github.com/org/skills.git"
`;

function refusalOf(text: string): EngineError {
  try {
    workspaceOfToml(text);
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error("it was taken");
}

describe("a workspace as TOML", () => {
  it("reads the form of the specification", () => {
    const content = workspaceOfToml(DOCUMENTED);
    expect(content).toMatchObject({
      name: "my-workspace",
      labels: {},
      spec: {
        agent: { provider: "claude-code" },
        repositories: [{ url: "https://github.com/org/repo.git", branch: "main" }],
        pre_commands: [{ name: "install", command: "npm", args: ["install"] }],
        skills: [{ source: "https://github.com/org/skills.git" }],
      },
    });
    expect(workspaceToToml(content)).toContain('[[workspace.repositories]]\nurl = "https://github.com/org/repo.git"');
    expect(workspaceOfToml(workspaceToToml(content))).toEqual(content);
  });

  it("round-trips exactly, whatever is in it", () => {
    fc.assert(
      fc.property(contents, (content) => {
        const text = workspaceToToml(content);
        expect(workspaceOfToml(text)).toEqual(content);
        // What is stored is the same, too, and so is the next file.
        expect(workspaceToToml(workspaceOfToml(text))).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  it("says where a file is no TOML, and does not repeat it", () => {
    const error = refusalOf('[workspace]\nname = "a"\nsecret = "hunter2\n');
    expect(error).toMatchObject({ code: "config_validation_error", details: { line: 3 } });
    expect(error.details.column).toBeGreaterThan(1);
    expect(error.message).toMatch(/^line 3, column \d+: /);
    expect(error.message).not.toContain("hunter2");
  });

  it("names what is not accepted as the file has it", () => {
    const agent = '[workspace.agent]\nprovider = "codex"\n';
    const cases: [string, string][] = [
      ["", "workspace: "],
      ['name = "a"', "workspace: "],
      [`[workspace]\n${agent}`, "workspace.name: "],
      ['[workspace]\nname = "a"\n', "workspace.agent: "],
      [`[other]\n[workspace]\nname = "a"\n${agent}`, 'the file: Unrecognized key: "other"'],
      [`[workspace]\nname = "a"\ncolour = "red"\n${agent}`, 'workspace: Unrecognized key: "colour"'],
      [`[workspace]\nname = 2026-01-01\n${agent}`, "workspace.name: "],
      [
        `[workspace]\nname = "a"\n${agent}[[workspace.repositories]]\nurl = "ext::sh -c id"`,
        "workspace.repositories.0.url: ",
      ],
      [`[workspace]\nname = "a"\n${agent}[[workspace.skills]]\nsource = "x"`, "workspace.skills.0.source: "],
      [
        `[workspace]\nname = "a"\n${agent}[[workspace.credentials]]\nenv_var = "X"`,
        "workspace.credentials.0: accepted is",
      ],
      [
        `[workspace]\nname = "a"\n${agent}[workspace.network]\nenabled = false\n[[workspace.binaries]]\nmanager = "npm"\nname = "a"`,
        "workspace.network.enabled: what is cloned and installed needs the network",
      ],
      [
        `[workspace]\nname = "a"\n${agent}[[workspace.repositories]]\nurl = "https://a.b/c"\ndest_path = "../x"`,
        "workspace.repositories.0.dest_path: accepted are paths that stay",
      ],
    ];
    for (const [text, message] of cases) {
      const error = refusalOf(text);
      expect([text, error.code, error.message]).toEqual([
        text,
        "config_validation_error",
        expect.stringContaining(message),
      ]);
      expect(error.message.startsWith(message.split(":")[0] ?? "")).toBe(true);
    }
  });
});

const anyText = (maxLength: number) =>
  fc.string({ unit: "binary", maxLength }).filter((text) => text.isWellFormed() && !text.includes("\0"));
const word = fc.stringMatching(/^[a-z][a-z0-9]{0,20}$/);
const labels = fc.dictionary(
  fc.stringMatching(/^[A-Za-z0-9][\w./-]{0,20}$/),
  fc.stringMatching(/^[^\p{Cc},]{0,30}$/u).filter((text) => text.isWellFormed() && text.length <= 255),
  { maxKeys: 5 },
);
const repository = fc
  .record({
    url: fc.tuple(word, word, word).map(([a, b, c]) => `https://${a}.example/${b}/${c}.git`),
    pin: fc.constantFrom(
      {},
      { branch: "main" },
      { tag: "v1.0" },
      { commit: "0123456789abcdef".repeat(4).slice(0, 40) },
    ),
    depth: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
  })
  .map(({ pin, ...rest }) => Object.assign(rest, pin));

const skill = fc.record(
  { source: repository.map(({ url }) => url), ref: fc.option(word), path: fc.option(word), name: word },
  { requiredKeys: ["source", "name"] },
);
const credentialUse = fc
  .tuple(
    fc.oneof(fc.record({ name: word }), fc.record({ credential_id: fc.uuid() })),
    fc.record({ hosts: fc.array(word, { minLength: 1, maxLength: 2 }) }, { requiredKeys: [] }),
    // Longer than the names in `environment`, of which none may be the same.
    fc.stringMatching(/^_[A-Z]{22,30}$/),
  )
  .map(([which, more, name]) => Object.assign({}, which, more, { env_var: name }));
const mcpServer = fc.oneof(
  fc.record({ name: word, command: anyText(40).filter(Boolean), env: fc.dictionary(word, word, { maxKeys: 2 }) }),
  fc.record(
    {
      name: word,
      type: fc.constantFrom("http", "sse"),
      url: word.map((path) => `https://mcp.example/${path}`),
      headers: fc.dictionary(word, word, { maxKeys: 2 }),
    },
    { requiredKeys: ["name", "type", "url"] },
  ),
);

/** As clients send them, and then as they are stored. */
const contents: fc.Arbitrary<WorkspaceContent> = fc
  .record({
    name: anyText(50).filter((text) => text !== "" && !/\p{Cc}/u.test(text)),
    description: fc.option(anyText(200)),
    labels,
    spec: fc.record(
      {
        agent: fc.record(
          {
            provider: fc.constantFrom("codex", "claude-code"),
            model: word,
            system_prompt: anyText(200).filter(Boolean),
            tools_enabled: fc.boolean(),
            allowed_tools: fc.array(word, { maxLength: 3 }),
            mcp_servers: fc.uniqueArray(mcpServer, { maxLength: 3, selector: ({ name }) => name }),
          },
          { requiredKeys: ["provider"] },
        ),
        credentials: fc.uniqueArray(credentialUse, { maxLength: 3, selector: ({ env_var: name }) => name }),
        skills: fc.uniqueArray(skill, { maxLength: 3, selector: ({ name }) => name }),
        repositories: fc.uniqueArray(repository, { maxLength: 4, selector: ({ url }) => url.split("/").at(-1) }),
        pre_commands: fc.array(
          fc.record(
            {
              command: anyText(40).filter(Boolean),
              args: fc.array(anyText(60), { maxLength: 4 }),
              timeout_secs: fc.integer({ min: 1, max: 86_400 }),
            },
            { requiredKeys: ["command"] },
          ),
          { maxLength: 3 },
        ),
        binaries: fc.array(
          fc.record({ manager: fc.constantFrom("apt", "npm", "pip"), name: word.filter((name) => name.length > 1) }),
          { maxLength: 3 },
        ),
        filesystem: fc.constantFrom({}, { working_directory: "/workspace/a b/ü", exclusions: ["*.bin", "a b/ü"] }),
        environment: fc.dictionary(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,20}$/), anyText(80), { maxKeys: 5 }),
        resource_limits: fc.record({
          cpu_cores: fc.constantFrom(0.1, 0.5, 1, 2.25, 256),
          memory_mb: fc.integer({ min: 64, max: 1_048_576 }),
        }),
        persistence: fc.constantFrom("ephemeral", "persistent"),
        network: fc.record({ allowed_hosts: fc.array(word, { maxLength: 3 }) }),
        ports: fc.uniqueArray(fc.record({ port: fc.integer({ min: 4_000, max: 65_535 }) }), {
          maxLength: 3,
          selector: ({ port }) => port,
        }),
        volumes: fc.constantFrom([], [{ name: "data", mount_path: "/data", read_only: true }]),
        provisioning_scripts: fc.array(
          fc.oneof(
            anyText(60).filter(Boolean),
            fc.record({ script: anyText(60).filter(Boolean), user: fc.constantFrom("root", "agent") }),
          ),
          { maxLength: 3 },
        ),
        timeout_secs: fc.option(fc.integer({ min: 1, max: 10_000 })),
        image: fc.option(anyText(30).filter(Boolean)),
      },
      { requiredKeys: ["agent"] },
    ),
  })
  .map((given) => workspaceFields.parse(given));
