import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { Egress, type SetupSources } from "../../network/egress/egress.ts";
import { startNameServer } from "../../network/egress/proxy.test-kit.ts";
import { run, specOf as machineSpecOf, testRuntime } from "../../runtime/machines.test-kit.ts";
import { describeInCage } from "../../runtime/cage.test-kit.ts";
import { rootFolder } from "../../runtime/root.test-kit.ts";
import { specOf } from "../../contract/spec.test-kit.ts";
import type { GitRepo, SandboxSpec, Skill } from "../../contract/spec.ts";
import {
  makeRepository,
  startGitServer,
  type GitServer,
  type TestRepository,
} from "../../network/git-server.test-kit.ts";
import { startRegistry } from "../../network/registry.test-kit.ts";
import { lastSteps, setUpSteps } from "./set-up.ts";

const HOST = "git.test";

describeInCage("what is set up in a machine", () => {
  const test = testRuntime("set-up");
  const folder = rootFolder("repositories");
  let server: GitServer;
  let names: Awaited<ReturnType<typeof startNameServer>>;
  let made: TestRepository;
  let whole: TestRepository;
  let base: string;

  beforeAll(async () => {
    made = makeRepository(join(folder, "app.git"), { "run.sh": "#!/bin/sh\necho hello from $PWD\n" });
    makeRepository(join(folder, "links.git"), { out: { link: "/tmp" } });
    whole = makeRepository(join(folder, "whole.git"), { "SKILL.md": "of all\n", again: { link: "./SKILL.md" } });
    makeRepository(join(folder, "tools.git"), {
      "SKILL.md": "of all\n",
      "skills/part/SKILL.md": "of a part\n",
      "skills/part/help": "help\n",
      "skills/part/inside": { link: "help" },
      "skills/linked/SKILL.md": { link: "../part/SKILL.md" },
      "skills/up/SKILL.md": "up\n",
      "skills/up/deep/out": { link: "../../../SKILL.md" },
      "skills/absolute/SKILL.md": "absolute\n",
      "skills/absolute/out": { link: "/etc/passwd" },
      "skills/beside/SKILL.md": "beside\n",
      "skills/beside/out": { link: "../sibling" },
      linked: { link: "skills/part" },
    });
    server = await startGitServer(folder);
    names = await startNameServer(() => "127.0.0.1");
    base = `http://${HOST}:${server.port}`;
  });
  afterAll(async () => {
    server.close();
    await names.close();
  });

  /** A machine with a way out, in which this is set up; `said` is what was logged. */
  async function setUp(
    spec: Partial<SandboxSpec>,
    more: Partial<SetupSources> & { env?: Record<string, string> } = {},
  ) {
    const { env: own = {}, ...given } = more;
    const sources = { repositoryHosts: [HOST], plainHttp: true, registryHosts: [], ...given };
    const egress = new Egress({
      allowedRanges: ["127.0.0.0/8"],
      upstream: undefined,
      certificates: undefined,
      sources,
      clock: systemClock,
      log: silentLog,
    });
    const env = { ...egress.environment({ enabled: true }), ...own };
    const machine = await test.runtime.create(machineSpecOf({ env }));
    const proxy = egress.open(machine, { enabled: true, allowedHosts: [], dnsServers: [names.address] });
    const said: string[] = [];
    const options = {
      machine,
      spec: specOf(spec),
      sources,
      clock: systemClock,
      recorder: {
        event: (_type: string, data: Readonly<Record<string, unknown>>) => void said.push(String(data["line"])),
      },
      signal: new AbortController().signal,
      allowHosts: async (_: string, hosts: readonly string[]) => {
        const close = proxy.allowHosts(hosts);
        return async () => close();
      },
    };
    const steps = [...setUpSteps(options), ...lastSteps(options)];
    const sh = async (command: string) => (await run(machine, command)).stdout.trim();
    const begin = async (): Promise<void> => {
      for (const step of steps) await step.run();
    };
    return { machine, steps: steps.map(({ name }) => name), begin, said, sh };
  }

  const skill = (name: string, more: Partial<Skill>): Skill => ({
    source: `${base}/tools.git`,
    ref: undefined,
    path: undefined,
    name,
    ...more,
  });

  const repo = (name: string, more: Partial<GitRepo> = {}): GitRepo => ({
    url: `${base}/${name}`,
    pin: undefined,
    path: "/home/agent/app",
    depth: undefined,
    ...more,
  });

  it("clones repositories as they are pinned", async () => {
    const pins: [string, Partial<GitRepo>, string][] = [
      ["default", {}, `${made.third} main 3`],
      ["branch", { pin: { kind: "branch", name: "side" } }, `${made.first} side 1`],
      ["tag", { pin: { kind: "tag", name: "v1" } }, `${made.second} HEAD 2`],
      ["tag-of-both", { pin: { kind: "tag", name: "both" }, depth: 1 }, `${made.second} HEAD 1`],
      ["branch-of-both", { pin: { kind: "branch", name: "both" } }, `${made.third} heads/both 3`],
      ["commit", { pin: { kind: "commit", name: made.second } }, `${made.second} HEAD 2`],
      ["shallow", { depth: 2 }, `${made.third} main 2`],
      ["shallow-commit", { pin: { kind: "commit", name: made.first }, depth: 1 }, `${made.first} HEAD 1`],
    ];
    const gitRepos = pins.map(([name, more]) => repo("app.git", { ...more, path: `/workspace/${name}` }));
    const box = await setUp({ gitRepos, workingDirectory: "/workspace/work" });
    expect(box.steps).toEqual(["PrepareDisk", "CloneRepositories"]);
    await box.begin();
    for (const [name, , expected] of pins) {
      const look = "echo $(git rev-parse HEAD) $(git rev-parse --abbrev-ref HEAD) $(git rev-list --count HEAD)";
      expect([name, await box.sh(`cd /workspace/${name} && ${look}`)]).toEqual([name, expected]);
    }
    expect(await box.sh("stat -c '%U %a' /workspace /workspace/work /workspace/commit/file")).toBe(
      "agent 755\nagent 755\nagent 644",
    );
    expect(box.said).toContain(`${base}/app.git is at ${made.third} in /workspace/default`);
    expect(
      await box.sh("cd /workspace/default && git config --get-all remote.origin.url; ls .git/hooks 2>&1"),
    ).toContain(`${base}/app.git`);
  });

  it("checks out nothing that is excluded", async () => {
    const pins: Partial<GitRepo>[] = [
      {},
      { pin: { kind: "tag", name: "v1" } },
      { pin: { kind: "commit", name: made.first } },
    ];
    const gitRepos = pins.map((more, i) => repo("app.git", { ...more, path: `/workspace/${i}` }));
    const box = await setUp({ gitRepos, exclusions: [".gitmodules", "/no such; rm *"] });
    await box.begin();
    for (const i of pins.keys()) {
      expect(await box.sh(`cd /workspace/${i} && ls -A && git status --porcelain`)).toBe(
        ".git\n.gitattributes\nfile\nrun.sh",
      );
    }
  });

  it("is reached for its step alone", async () => {
    const box = await setUp({ gitRepos: [repo("app.git")] });
    const ask = `curl -s -o /dev/null -w '%{http_code}' ${base}/app.git/info/refs`;
    // The way out is there a moment after the machine.
    await expect.poll(() => box.sh(ask)).toBe("403");
    await box.begin();
    expect(await box.sh("cat app/file")).toBe("three");
    expect(await box.sh(ask)).toBe("403");
  });

  it("does not clone what it may not, and leaves nothing", async () => {
    const refused: [Partial<GitRepo>, Partial<SetupSources>, RegExp][] = [
      [{}, { repositoryHosts: [] }, /403/],
      [{}, { plainHttp: false }, /transport 'http' not allowed/],
      [{ url: `${base}/none.git` }, {}, /not found/],
      [{ pin: { kind: "branch", name: "v1" } }, {}, /there is no branch v1/],
      [{ pin: { kind: "tag", name: "side" } }, {}, /couldn't find remote ref refs\/tags\/side/],
      [{ pin: { kind: "commit", name: "0".repeat(40) } }, {}, /not our ref|0{40}/],
    ];
    for (const [more, sources, why] of refused) {
      const box = await setUp({ gitRepos: [repo("app.git", more)] }, sources);
      server.asked.length = 0;
      await expect(box.begin()).rejects.toThrow(why);
      expect(await box.sh("ls -A app")).toBe("");
      await box.machine.stop();
      await test.runtime.remove(box.machine.id);
    }
  });

  it("does not follow links of what it cloned before, and leaves what was there", async () => {
    const inLink = repo("app.git", { path: "/home/agent/app/out/deep" });
    const box = await setUp({ gitRepos: [repo("links.git"), inLink] });
    await expect(box.begin()).rejects.toThrow("/home/agent/app/out is no folder, or there is a link on the way");
    expect(await box.sh("ls -A /tmp")).toBe("");
    const again = await setUp({ gitRepos: [repo("app.git", { path: "/home/agent/there" })] });
    await again.sh("mkdir there; echo kept > there/file");
    await expect(again.begin()).rejects.toThrow("/home/agent/there is there already, and not empty");
    expect(await again.sh("cat there/file")).toBe("kept");
  });

  it("tries again what the network is to blame for", async () => {
    server.refuse.count = 1;
    const box = await setUp({ gitRepos: [repo("app.git")] });
    await box.begin();
    expect(await box.sh("cat app/file")).toBe("three");
    expect(box.said).toContain(`${base}/app.git was not reached; trying again in 2 s`);
    server.refuse = Object.assign(server.refuse, { count: 1, status: 401 });
    const refused = await setUp({ gitRepos: [repo("app.git")] });
    await expect(refused.begin()).rejects.toThrow("could not read Username");
    expect(server.refuse.count).toBe(0);
  });

  it("is taken up where it was by the next process of a node", async () => {
    const box = await setUp({ gitRepos: [repo("app.git")] });
    server.asked.length = 0;
    // As seen from the machine: the first one may still be there.
    await Promise.all([box.begin(), box.begin()]);
    expect(server.asked.filter((path) => path.includes("/info/refs"))).toHaveLength(1);
    expect(await box.sh("cat app/file")).toBe("three");
  });

  it("installs packages for the agent, from where the operator says", { timeout: 120_000 }, async () => {
    const registry = await startRegistry(join(folder, "registry"));
    const from = `http://registry.test:${registry.port}`;
    const binaries = [{ manager: "npm", name: "hello-tool", version: "1.0.0" }] as const;
    const env = { npm_config_registry: from };
    const box = await setUp({ binaries }, { registryHosts: ["registry.test"], env });
    expect(box.steps).toEqual(["InstallBinaries"]);
    await box.begin();
    expect(await box.sh("hello-tool; command -v hello-tool")).toBe("hello\n/home/agent/.local/bin/hello-tool");
    expect(await box.sh(`curl -s -o /dev/null -w '%{http_code}' ${from}/hello-tool`)).toBe("403");
    const none = await setUp(
      { binaries: [{ ...binaries[0], version: "2.0.0" }] },
      { registryHosts: ["registry.test"], env },
    );
    await expect(none.begin()).rejects.toThrow(/^npm: it ended with exit code 1; /);
    const closed = await setUp({ binaries }, { env });
    registry.asked.length = 0;
    await expect(closed.begin()).rejects.toThrow(/^npm: /);
    expect(registry.asked).toEqual([]);
    registry.close();
    const missing = await setUp(
      { binaries: [{ manager: "cargo", name: "ripgrep", version: undefined }] },
      { env: { PATH: "/bin" } },
    );
    await expect(missing.begin()).rejects.toThrow(
      "cargo: it ended with exit code 1; its last line: the image has no cargo",
    );
  });

  it("puts skills where the agent finds them", async () => {
    const skills = [
      skill("whole", { source: `${base}/whole.git` }),
      skill("at-a-tag", { source: `${base}/whole.git`, ref: "v1" }),
      skill("at-a-branch", { source: `${base}/whole.git`, ref: "side" }),
      skill("at-a-commit", { source: `${base}/whole.git`, ref: whole.second }),
      skill("part", { path: "skills/part" }),
    ];
    const box = await setUp({ agentProvider: "claude-code", skills });
    expect(box.steps).toEqual(["InstallSkills"]);
    await box.begin();
    const at = "/home/agent/.claude/skills";
    expect(await box.sh(`cd ${at}; ls; cat */file`)).toBe(
      "at-a-branch\nat-a-commit\nat-a-tag\npart\nwhole\none\ntwo\ntwo\nthree",
    );
    expect(await box.sh(`cd ${at}/part; cat SKILL.md inside; ls -A; stat -c %U SKILL.md`)).toBe(
      "of a part\nhelp\nSKILL.md\nhelp\ninside\nagent",
    );
    // Nothing else stays, and nothing was run.
    expect(await box.sh(`ls -A ${at}/whole; ls -A .cache/engine-skills /tmp`)).not.toMatch(/\.git\n|part|evil/);
    for (const [agentProvider, folder] of [
      ["codex", ".agents/skills"],
      ["gemini-cli", ".gemini/skills"],
      ["opencode", ".config/opencode/skills"],
    ] as const) {
      const other = await setUp({ agentProvider, skills: [skill("part", { path: "skills/part" })] });
      await other.begin();
      expect(await other.sh(`cat ~/${folder}/part/SKILL.md`)).toBe("of a part");
    }
  });

  it("refuses skills that are none, and that reach out of themselves", async () => {
    const refused: [Partial<Skill>, RegExp][] = [
      [{ path: "none" }, /^s: .*there is no folder none in the repository/],
      [{ path: "skills" }, /^s: .*there is no SKILL\.md in skills/],
      [{ path: "linked" }, /^s: .*there is no folder linked in the repository, or there is a link on the way/],
      [{ path: "skills/linked" }, /^s: .*there is no SKILL\.md in skills\/linked/],
      [{ path: "skills/up" }, /^s: .*a link leaves the skill: deep\/out/],
      [{ path: "skills/absolute" }, /^s: .*a link leaves the skill: out/],
      [{ path: "skills/beside" }, /^s: .*a link leaves the skill: out/],
      [{ ref: "none" }, /Remote branch none not found/],
    ];
    for (const [more, why] of refused) {
      const box = await setUp({ agentProvider: "claude-code", skills: [skill("s", more)] });
      await expect(box.begin()).rejects.toThrow(why);
      expect(await box.sh("ls -A .claude/skills .cache/engine-skills/s 2>/dev/null | grep -v :")).toBe("");
      await box.machine.stop();
      await test.runtime.remove(box.machine.id);
    }
    const there = await setUp({ agentProvider: "claude-code", skills: [skill("s", {})] });
    await there.sh("mkdir -p .claude/skills/s; echo kept > .claude/skills/s/SKILL.md");
    await expect(there.begin()).rejects.toThrow("/home/agent/.claude/skills/s is there already");
    expect(await there.sh("cat .claude/skills/s/SKILL.md")).toBe("kept");
    const closed = await setUp({ agentProvider: "claude-code", skills: [skill("s", {})] }, { repositoryHosts: [] });
    await expect(closed.begin()).rejects.toThrow(/403/);
  });

  it("tells the agent of its subagents", async () => {
    const subagent = {
      name: "reviewer",
      description: 'Reviews: "all" # of it',
      prompt: "---\n$HOME `id`\nBe strict.",
      model: "small",
      tools: ["Read", "Grep"],
    };
    const claude = await setUp({ agentProvider: "claude-code", subagents: [subagent] });
    expect(claude.steps).toEqual(["ConfigureAgent"]);
    await claude.begin();
    expect(await claude.sh("cat .claude/agents/reviewer.md")).toBe(
      '---\nname: "reviewer"\ndescription: "Reviews: \\"all\\" # of it"\nmodel: "small"\ntools: "Read, Grep"\n---\n\n' +
        subagent.prompt,
    );
    expect(await claude.sh("stat -c '%U %F' .claude/agents/reviewer.md")).toBe("agent regular file");
    await expect(claude.begin()).resolves.toBeUndefined();
    const opencode = await setUp({ agentProvider: "opencode", subagents: [subagent] });
    await opencode.begin();
    expect(await opencode.sh("head -3 .config/opencode/agents/reviewer.md")).toContain('mode: "subagent"');
    const linked = await setUp({ agentProvider: "claude-code", subagents: [subagent] });
    await linked.sh("mkdir .claude; ln -s /tmp .claude/agents");
    await expect(linked.begin()).rejects.toThrow("is no folder, or there is a link on the way");
  });

  it("runs commands before the rest, as they are, in the working directory", async () => {
    const preCommands = [
      { name: "mine", command: "./run.sh", args: [], timeoutSecs: 60 },
      { name: "as it is", command: "printf", args: ["%s|", "$HOME", "a b", "; id"], timeoutSecs: 60 },
      { name: "who", command: "id", args: ["-un"], timeoutSecs: 60 },
    ];
    const box = await setUp({ gitRepos: [repo("app.git")], workingDirectory: "/home/agent/app", preCommands });
    await box.begin();
    expect(box.said.slice(-3)).toEqual(["hello from /home/agent/app", "$HOME|a b|; id|", "agent"]);
    const failing = await setUp({ preCommands: [{ name: "build", command: "false", args: [], timeoutSecs: 60 }] });
    await expect(failing.begin()).rejects.toThrow("build: it ended with exit code 1");
  });
});
