import { describe, expect, it } from "vitest";
import { createRequest, toRequest } from "./create-request.ts";

/** What is said of the first problem; undefined where the request is taken. */
function refusalOf(body: Record<string, unknown>): string | undefined {
  const { error } = createRequest.safeParse({ agent_provider: "codex", ...body });
  const issue = error?.issues[0];
  return issue === undefined ? undefined : `${issue.path.map(String).join(".")}: ${issue.message}`;
}
const refusalOfRepo = (more: Record<string, unknown>, body: Record<string, unknown> = {}) =>
  refusalOf({ git_repos: [{ url: "https://git.example/a/b.git", ...more }], ...body });

describe("repositories", () => {
  it("come over HTTPS, or HTTP, and by no other way of git's", () => {
    for (const url of [
      "ext::sh -c id",
      "file:///etc/passwd",
      "/etc",
      "./a",
      "ssh://git@git.example/a",
      "git@git.example:a/b",
      "git://git.example/a",
      "ftp://git.example/a",
      "--upload-pack=id",
      "-u",
      "https://user:secret@git.example/a",
      "https://git.example/a?x=1",
      "https://git.example/a#b",
      "https://git.example/",
      "https://git.example/a b",
      "https://git.example/a\n",
      "https://git.example/a\0",
      "https://git.example\\@other/a",
      " https://git.example/a",
      "https://-x/a",
      "https://git.example/" + "a".repeat(2_048),
      "",
    ]) {
      expect([url, refusalOfRepo({ url })]).toEqual([
        url,
        expect.stringMatching(/^git_repos\.0\.url: accepted are https/),
      ]);
    }
    for (const url of ["https://git.example/a", "HTTPS://Git.Example:8443/a/b/", "http://10.0.0.1/a"]) {
      expect([url, refusalOfRepo({ url })]).toEqual([url, undefined]);
    }
  });

  it("are pinned by one branch, tag or whole commit", () => {
    for (const name of [
      "-f",
      "--upload-pack=x",
      "a b",
      "a..b",
      "a~1",
      "@",
      "a@{1}",
      "a.lock",
      "/a",
      "a/",
      ".a",
      "a\n",
      "a:b",
      "",
    ]) {
      expect([name, refusalOfRepo({ branch: name })]).toEqual([name, expect.stringContaining("git_repos.0.branch")]);
      expect([name, refusalOfRepo({ tag: name })]).toEqual([name, expect.stringContaining("git_repos.0.tag")]);
    }
    for (const name of ["main", "feature/a-b_c.d", "v1.0", "ü"])
      expect(refusalOfRepo({ branch: name })).toBeUndefined();
    for (const commit of ["abc", "HEAD", "g".repeat(40), "-".repeat(40)]) {
      expect([commit, refusalOfRepo({ commit })]).toEqual([commit, expect.stringContaining("whole hash")]);
    }
    expect(refusalOfRepo({ branch: "a", tag: "b" })).toBe("git_repos.0: accepted is one of branch, tag and commit");
    expect(refusalOfRepo({ depth: 0 })).toContain("git_repos.0.depth");
    expect(refusalOfRepo({ credential_id: "" })).toContain("git_repos.0.credential_id");
  });

  it("are cloned to folders of their own inside the agent's", () => {
    for (const path of [
      "..",
      "../x",
      "a/../../x",
      "/etc/x",
      "/home/agentx",
      "/workspacex",
      "/",
      ".",
      "a//b",
      "-x",
      "a\n",
      "/home/agent/../x",
      "",
    ]) {
      expect([path, refusalOfRepo({ dest_path: path })]).toEqual([
        path,
        expect.stringContaining("git_repos.0.dest_path: accepted are paths"),
      ]);
    }
    const at = (dest: string | undefined, body: Record<string, unknown> = {}) =>
      createRequest.parse({
        agent_provider: "codex",
        git_repos: [{ url: "https://git.example/a/b.git", dest_path: dest }],
        ...body,
      }).gitRepos?.[0]?.path;
    expect(at(undefined)).toBe("/home/agent/b");
    expect(at("x/y")).toBe("/home/agent/x/y");
    expect(at("/workspace")).toBe("/workspace");
    expect(at("x", { working_directory: "/workspace/w" })).toBe("/workspace/w/x");
    const twice = [{ url: "https://git.example/a/b" }, { url: "https://other.example/b.git" }];
    expect(refusalOf({ git_repos: twice })).toBe(
      "git_repos.1.dest_path: another repository is cloned to the same folder",
    );
    expect(refusalOf({ working_directory: "/etc" })).toContain("working_directory");
    expect(refusalOf({ working_directory: "relative" })).toContain("working_directory");
  });

  it("have the network, unless that is switched off", () => {
    expect(refusalOfRepo({}, { network: { enabled: false } })).toBe(
      "network.enabled: what is cloned and installed needs the network, and so do credentials",
    );
    const spec = createRequest.parse({ agent_provider: "codex", git_repos: [{ url: "https://git.example/a/b" }] });
    expect(spec.network).toEqual({ enabled: true, allowedHosts: [], dnsServers: [] });
    expect(createRequest.parse({ agent_provider: "codex" }).network.enabled).toBe(false);
  });
});

describe("binaries and commands", () => {
  it("are packages by their names, and nothing that a manager reads as something else", () => {
    const binary = (manager: string, name: string, version?: string) =>
      refusalOf({ binaries: [{ manager, name, ...(version === undefined ? {} : { version }) }] });
    for (const [manager, name] of [
      ["apt", "-o=x"],
      ["apt", "a/b"],
      ["npm", "git+https://x"],
      ["npm", "../x"],
      ["npm", "@a/b/c"],
      ["pip", "-r"],
      ["pip", "a @ https://x"],
      ["pip", "./x"],
      ["cargo", "--git"],
      ["cargo", "a@1"],
      ["brew", "a"],
    ] as const) {
      expect([name, binary(manager, name)]).toEqual([name, expect.stringMatching(/^binaries\.0\.(name|manager): /)]);
    }
    for (const version of ["-1", "1 2", "file:x/y", "*", ""]) expect(binary("npm", "a", version)).toContain("version");
    for (const [manager, name] of [
      ["apt", "g++"],
      ["npm", "@scope/a.b"],
      ["pip", "ruamel.yaml"],
      ["cargo", "ripgrep"],
    ] as const) {
      expect([name, binary(manager, name, "1.2.3-rc.1")]).toEqual([name, undefined]);
    }
  });

  it("are shown as they would be asked for", () => {
    const body = {
      agent_provider: "codex",
      working_directory: "/workspace",
      git_repos: [{ url: "https://git.example/a/b", commit: "A".repeat(40), depth: 3 }],
      binaries: [{ manager: "pip", name: "black" }],
      pre_commands: [{ command: "make", args: ["all"] }],
    };
    const spec = createRequest.parse(body);
    const shown = toRequest(spec);
    expect(shown).toMatchObject({
      working_directory: "/workspace",
      git_repos: [
        { url: "https://git.example/a/b", commit: "a".repeat(40), branch: null, dest_path: "/workspace/b", depth: 3 },
      ],
      binaries: [{ manager: "pip", name: "black", version: null }],
      pre_commands: [{ name: "make", command: "make", args: ["all"], timeout_secs: 600 }],
    });
    expect(createRequest.parse(shown)).toEqual(spec);
    expect(refusalOf({ pre_commands: [{ command: "" }] })).toContain("pre_commands.0.command");
    expect(refusalOf({ pre_commands: [{ command: "a", args: ["\0"] }] })).toContain("pre_commands.0.args.0");
  });
});
