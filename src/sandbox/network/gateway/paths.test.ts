import { array, assert, constantFrom, property, tuple } from "fast-check";
import { describe, expect, it } from "vitest";
import { EgressRefusal } from "../http/refusal.ts";
import { agentTarget, gitTarget, namedTarget, withoutKeys } from "./paths.ts";
import type { GitRoute } from "./routes.ts";

const ROUTE: GitRoute = {
  credentialId: "c",
  upstream: { secure: true, host: "git.test", port: 443, path: "/org/app.git" },
};
const UPLOAD = "info/refs?service=git-upload-pack";

/** What becomes of a request for a repository: where it goes with the credential, or without, or a refusal. */
function outcome(method: string, target: string): string {
  const named = namedTarget(target);
  if (named?.route !== "git") return "none";
  try {
    const found = gitTarget(ROUTE, { method, after: named.after, rest: named.rest });
    return "path" in found ? `${named.place} ${found.path}` : `to ${found.redirect}`;
  } catch (error) {
    if (error instanceof EgressRefusal) return String(error.status);
    throw error;
  }
}

describe("repositories", () => {
  it.each([
    ["GET", `git/0/${UPLOAD}`, "0 /org/app.git/info/refs?service=git-upload-pack"],
    ["GET", `git/7/repo/${UPLOAD}`, "7 /org/app.git/info/refs?service=git-upload-pack"],
    ["GET", "git/0/repo.git/info/refs?service=git-receive-pack", "0 /org/app.git/info/refs?service=git-receive-pack"],
    ["POST", "git/0/repo/git-upload-pack", "0 /org/app.git/git-upload-pack"],
    ["POST", "git/0/git-receive-pack", "0 /org/app.git/git-receive-pack"],
    ["POST", "git/0/repo.git/info/lfs/objects/batch", "0 /org/app.git/info/lfs/objects/batch"],
    ["GET", "git/0/repo.git/info/lfs/locks?path=a/b&limit=1", "0 /org/app.git/info/lfs/locks?path=a/b&limit=1"],
    ["GET", `git/0/repo-web.git/${UPLOAD}`, `to https://git.test/org/app-web.git/${UPLOAD}`],
    ["GET", `git/0/repo2/sub/${UPLOAD}`, `to https://git.test/org/app2/sub/${UPLOAD}`],
  ])("%s %s goes to %s", (method, target, expected) => {
    expect(outcome(method, `/_engine/${target}`)).toBe(expected);
  });

  it.each([
    ["GET", "git/0/repo/../other.git/info/refs?service=git-upload-pack", "403"],
    ["GET", "git/0/../1/info/refs?service=git-upload-pack", "403"],
    ["GET", "git/00/info/refs?service=git-upload-pack", "none"],
    ["GET", "git/-1/info/refs?service=git-upload-pack", "none"],
    ["GET", "git/0%2f..%2f1/info/refs", "none"],
    ["GET", "git/0", "none"],
    ["GET", "git/0/", "403"],
    ["GET", "git/0//info/refs?service=git-upload-pack", "403"],
    ["GET", "git/0/info/refs", "403"],
    ["GET", "git/0/info/refs?service=git-upload-archive", "403"],
    ["GET", "git/0/info/refs?service=git-upload-pack&x=y", "403"],
    ["GET", "git/0/info/refs?x=y&service=git-upload-pack", "403"],
    ["GET", "git/0/info/refs?service=git-upload-pack#", "403"],
    ["POST", "git/0/info/refs?service=git-upload-pack", "403"],
    ["GET", "git/0/git-upload-pack", "403"],
    ["POST", "git/0/git-upload-pack?a=b", "403"],
    ["POST", "git/0/git-upload-pack/", "403"],
    ["GET", "git/0/HEAD", "403"],
    ["GET", "git/0/info/lfs", "403"],
    ["DELETE", "git/0/info/lfs/objects/batch", "403"],
    ["POST", "git/0/info/lfs/../../../other.git/git-upload-pack", "403"],
    ["POST", "git/0/info/lfs/%2e%2e/%2e%2e/x", "403"],
    ["POST", "git/0/info/lfs/a%2f..%2f..%2fx", "403"],
    ["POST", "git/0/info/lfs/a\\..\\..\\x", "403"],
    ["POST", "git/0/info/lfs//x", "403"],
    ["POST", "git/0/info/lfs/a;/../x", "403"],
    ["POST", "git/0/repo-web.git/git-upload-pack", "403"],
    ["GET", `git/0/repo2/../../x/${UPLOAD}`, "403"],
  ])("%s %s is refused", (method, target, expected) => {
    expect(outcome(method, `/_engine/${target}`)).toBe(expected);
  });

  it("never let a request through that servers may take for one of another repository", () => {
    const pieces = constantFrom(
      ..."/ // . .. %2e %2E%2e %2f %5c \\ ; ? # & %00 % @ repo .git info refs lfs info/refs info/lfs objects".split(
        " ",
      ),
      ..."other.git git-upload-pack git-receive-pack service=git-upload-pack %252e é HEAD 0 1".split(" "),
      "/info/refs?service=git-upload-pack",
      " ",
      "\t",
    );
    const methods = constantFrom("GET", "POST", "PUT", "HEAD", "DELETE");
    const targets = tuple(constantFrom("git/0", "git/0/", "git/0/repo", "git/0/info/lfs/"), array(pieces));
    let passed = 0;
    const holds = property(methods, targets, (method, [start, rest]) => {
      const result = outcome(method, `/_engine/${start}${rest.join("")}`);
      if (!result.startsWith("0 ")) return;
      passed++;
      const path = result.slice(2).split("?")[0] ?? "";
      // As it stands: no server reads it in another way, decoded or not.
      expect(path).toMatch(/^\/org\/app\.git\/(info\/refs|git-upload-pack|git-receive-pack|info\/lfs(\/[\w~.-]+)+)$/);
      expect(path).not.toMatch(/%|\\|\/\.|\/\//);
      expect(new URL(path, "https://git.test").pathname).toBe(path);
      expect(result).not.toContain("#");
    });
    assert(holds, {
      numRuns: 5_000,
      examples: [["GET", ["git/0", ["/", "info/refs", "?", "service=git-upload-pack"]]]],
    });
    expect(passed).toBeGreaterThan(0);
  });
});

describe("the agent's API", () => {
  const agent = { credentialId: "c", keyStyle: "bearer", upstream: { ...ROUTE.upstream, path: "/base" } } as const;

  it.each([
    ["", "/base/"],
    ["?a=b", "/base/?a=b"],
    [
      "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=k",
      "/base/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    ],
    ["/v1/a%20b/..c/d..?x=../..", "/base/v1/a%20b/..c/d..?x=../.."],
    ["/v1/100%25", "/base/v1/100%25"],
  ])("%j is %s", (rest, expected) => {
    expect(agentTarget(agent, rest)).toBe(expected);
  });

  it("never leaves its path", () => {
    const pieces = constantFrom(..."/ . .. %2e %2f %5c \\ ; %25 25 2e a ? # %zz".split(" "));
    let passed = 0;
    const holds = property(array(pieces), (rest) => {
      const target = targetOrRefusal(`/${rest.join("")}`);
      if (target instanceof EgressRefusal) return;
      passed++;
      let path = target.split("?")[0] ?? "";
      for (let round = 0; round < 3; round++) {
        const read = new URL(path.replaceAll(";", "/"), "https://git.test").pathname;
        expect(read.startsWith("/base/")).toBe(true);
        path = path.replaceAll(/%(2e|2f|5c|25)/gi, (coded) => decodeURIComponent(coded));
      }
    });
    assert(holds, { numRuns: 5_000, examples: [[["%25", "25", "2e", "%2e"]]] });
    expect(passed).toBeGreaterThan(100);
  });

  function targetOrRefusal(rest: string): string | EgressRefusal {
    try {
      return agentTarget(agent, rest);
    } catch (error) {
      if (error instanceof EgressRefusal) return error;
      throw error;
    }
  }

  it("keeps what is no key in a query as it came", () => {
    expect(withoutKeys("/a?x=%2F&&y&KEY=1&k%65y&api_key=2&+key=3&keys=4&a=key")).toBe("/a?x=%2F&&y&keys=4&a=key");
    expect(withoutKeys("/a?key=1")).toBe("/a");
    expect(withoutKeys("/a?")).toBe("/a?");
  });
});
