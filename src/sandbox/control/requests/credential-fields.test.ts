import { describe, expect, it } from "vitest";
import { createRequest, toRequest } from "./create-request.ts";

function parse(body: Record<string, unknown>) {
  return createRequest.safeParse({ agent_provider: "codex", ...body });
}

function refusalOf(body: Record<string, unknown>): string | undefined {
  const [issue] = parse(body).error?.issues ?? [];
  return issue === undefined ? undefined : `${issue.path.join(".")}: ${issue.message}`;
}

describe("credentials of a create request", () => {
  it("are ids, with a variable and hosts where they are said, and turn the network on", () => {
    const credentials = [
      { credential_id: "c1" },
      { credential_id: "c2", env_var: "TOKEN", hosts: ["API.Bücher.example.", "b.example", "b.example"] },
    ];
    const spec = createRequest.parse({ agent_provider: "codex", credentials });
    expect(spec.credentials).toEqual([
      { credentialId: "c1", envVar: undefined, hosts: [] },
      { credentialId: "c2", envVar: "TOKEN", hosts: ["api.xn--bcher-kva.example", "b.example"] },
    ]);
    expect(spec.network.enabled).toBe(true);
    expect(toRequest(spec)["credentials"]).toEqual([
      { credential_id: "c1", env_var: null, hosts: [] },
      { credential_id: "c2", env_var: "TOKEN", hosts: ["api.xn--bcher-kva.example", "b.example"] },
    ]);
  });

  it("are shown in a form that asks for the same again", () => {
    const credentials = [{ credential_id: "c", env_var: "A", hosts: ["a.example"] }];
    const gitRepos = [{ url: "https://git.example/a/b", credential_id: "c" }];
    const spec = createRequest.parse({ agent_provider: "codex", credentials, git_repos: gitRepos });
    expect(spec.gitRepos).toMatchObject([{ credentialId: "c" }]);
    expect(createRequest.parse(toRequest(spec))).toEqual(spec);
  });

  it.each<[string, Record<string, unknown>]>([
    ["credentials.0.credential_id", { credentials: [{}] }],
    ["credentials.0.credential_id", { credentials: [{ credential_id: "" }] }],
    ["credentials.0.credential_id", { credentials: [{ credential_id: "a\nb" }] }],
    ["credentials.0.env_var", { credentials: [{ credential_id: "c", env_var: "A-B" }] }],
    ["credentials.0.hosts", { credentials: [{ credential_id: "c", hosts: [] }] }],
    ["credentials.0.hosts.0", { credentials: [{ credential_id: "c", hosts: ["*.example.com"] }] }],
    ["credentials.0.hosts.0", { credentials: [{ credential_id: "c", hosts: ["127.0.0.1"] }] }],
    ["credentials.0.hosts.0", { credentials: [{ credential_id: "c", hosts: ["https://a.example"] }] }],
    ["credentials.0", { credentials: [{ credential_id: "c", value: "s" }] }],
    ["credentials.1.env_var", { credentials: ["A", "A"].map((env_var) => ({ credential_id: "c", env_var })) }],
    ["credentials.0.env_var", { env_vars: { A: "x" }, credentials: [{ credential_id: "c", env_var: "A" }] }],
    ["credentials", { credentials: Array.from({ length: 33 }, () => ({ credential_id: "c" })) }],
    ["network.enabled", { network: { enabled: false }, credentials: [{ credential_id: "c" }] }],
    ["git_repos.0.credential_id", { git_repos: [{ url: "https://a.example/b", credential_id: 1 }] }],
  ])("are refused with the field: %s", (field, body) => {
    expect(refusalOf(body)?.slice(0, field.length + 2)).toBe(`${field}: `);
  });
});
