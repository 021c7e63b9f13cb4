import { describe, expect, it } from "vitest";
import { agentBaseUrl, gatewayEnvironment } from "./environment.ts";
import { repo, use } from "./gateway.test-kit.ts";
import { routesOf } from "./routes.ts";

const URLS = { "claude-code": "https://api.anthropic.com", "gemini-cli": "http://10.0.0.1:8080/gemini" };

describe("routes", () => {
  it("lead to the agent's API by the variable of its key, and to hosts", () => {
    const credentials = [
      use("c-1", ["api.github.com"], "GITHUB_TOKEN"),
      use("c-2", ["api.anthropic.com", "other.test"], "ANTHROPIC_API_KEY"),
    ];
    const { agent, hosts } = routesOf({ agentProvider: "claude-code", credentials }, URLS);
    expect(agent).toEqual({
      credentialId: "c-2",
      upstream: { secure: true, host: "api.anthropic.com", port: 443, path: "" },
      keyStyle: { header: "x-api-key" },
    });
    expect([...hosts]).toEqual([
      ["api.github.com", { credentialId: "c-1", isAgents: false, keyStyle: "bearer" }],
      ["api.anthropic.com", { credentialId: "c-2", isAgents: true, keyStyle: { header: "x-api-key" } }],
      ["other.test", { credentialId: "c-2", isAgents: true, keyStyle: "bearer" }],
    ]);
  });

  it("take an operator's URL as it is", () => {
    const credentials = [use("c", ["10.0.0.1"], "GEMINI_API_KEY")];
    expect(routesOf({ agentProvider: "gemini-cli", credentials }, URLS).agent).toEqual({
      credentialId: "c",
      upstream: { secure: false, host: "10.0.0.1", port: 8080, path: "/gemini" },
      keyStyle: { header: "x-goog-api-key" },
    });
  });

  it.each([
    ["the key is for other hosts", "claude-code", use("c", ["other.test"], "ANTHROPIC_API_KEY")],
    ["the key is another agent's", "claude-code", use("c", ["api.anthropic.com"], "OPENAI_API_KEY")],
    ["the key has no variable", "claude-code", use("c", ["api.anthropic.com"])],
    ["the agent has no API", "codex", use("c", ["api.openai.com"], "OPENAI_API_KEY")],
    ["the agent is unknown", "toString", use("c", ["api.openai.com"], "OPENAI_API_KEY")],
  ])("lead to no API of an agent where %s", (_what, agentProvider, credential) => {
    expect(routesOf({ agentProvider, credentials: [credential] }, URLS).agent).toBeUndefined();
  });

  it("lead to repositories that have a credential, by their place", () => {
    const gitRepos = [
      { ...repo("https://git.test/public.git"), credentialId: undefined },
      repo("https://git.test:8443/org/app.git/"),
      repo("http://git.test/plain"),
    ];
    const routes = routesOf({ agentProvider: "codex", gitRepos }, URLS);
    const upstream = { secure: true, host: "git.test", port: 8443, path: "/org/app.git" };
    expect([...routes.git]).toEqual([[1, { credentialId: "cred-git", upstream }]]);
    expect([...routesOf({ agentProvider: "codex", gitRepos }, URLS, { plainHttp: true }).git.keys()]).toEqual([1, 2]);
    expect(routes.hosts.size).toBe(0);
  });
});

describe("the environment", () => {
  it("has placeholders, and git's way to the gateway", () => {
    const credentials = [use("c-1", ["a.test"], "TOKEN"), use("c-2", ["b.test"])];
    const gitRepos = [{ ...repo("https://a.test/x"), credentialId: undefined }, repo("https://a.test/y.git")];
    expect(gatewayEnvironment({ credentials, gitRepos, envVars: { GIT_CONFIG_COUNT: "2" } })).toEqual({
      TOKEN: expect.not.stringContaining("c-1"),
      GIT_CONFIG_COUNT: "3",
      GIT_CONFIG_KEY_2: "url.http://127.0.0.1:3128/_engine/git/1/repo.insteadOf",
      GIT_CONFIG_VALUE_2: "https://a.test/y",
    });
    expect(gatewayEnvironment({ envVars: {} })).toEqual({});
    expect(agentBaseUrl).toBe("http://127.0.0.1:3128/_engine/agent");
  });
});
