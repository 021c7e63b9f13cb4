import { describe, expect, it } from "vitest";
import { EngineError } from "../../../core/errors.ts";
import type { JobOwner } from "../../../fabric/job.ts";
import { createRequest } from "../requests/create-request.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import { bindCredentials, idOfLabel } from "./bind.ts";
import { credentialIdsIn } from "../../contract/credential-uses.ts";
import { directoryOf } from "./directory.test-kit.ts";
import type { CredentialDirectory } from "./directory.ts";

const credential = (id: string, kind = "api_key", metadata: Record<string, unknown> = {}) => ({
  id,
  label: `label of ${id}`,
  kind,
  metadata,
});
const STORE = directoryOf([
  credential("key"),
  credential("other"),
  credential("pat", "pat"),
  credential("bound", "pat", { hosts: ["A.example", "b.example"] }),
  credential("odd", "pat", { hosts: "a.example" }),
  credential("wild", "pat", { hosts: ["*.a.example"] }),
  credential("aws", "aws_creds"),
  credential("app", "github_app"),
  credential("url", "url"),
]);
const caller = (subject: string, more: Partial<JobOwner> = {}): JobOwner => {
  return { subject, kind: "session", role: "write", databases: undefined, ...more };
};
const [ANN, BOB] = [caller("ann", { databases: ["d"] }), caller("bob")];
const ROOT = caller("root", { role: "admin" });
const URLS = { codex: "https://api.openai.example/v1" };

function specOf(body: Record<string, unknown>): SandboxSpec {
  return createRequest.parse({ agent_provider: "codex", ...body });
}

function bound(body: Record<string, unknown>, directory: CredentialDirectory = STORE): Promise<SandboxSpec> {
  return bindCredentials(specOf(body), { directory, owner: ANN, providerUrls: URLS });
}

const hostsOf = async (use: Record<string, unknown>) => (await bound({ credentials: [use] })).credentials?.[0]?.hosts;
const repo = (credentialId: string, url = "https://a.example/x/y") => ({
  git_repos: [{ url, credential_id: credentialId }],
});

describe("hosts of credentials", () => {
  it("are those that are said; else of the agent's provider for its key; else of the credential's metadata", async () => {
    expect(await hostsOf({ credential_id: "key", env_var: "X", hosts: ["c.example"] })).toEqual(["c.example"]);
    expect(await hostsOf({ credential_id: "key", env_var: "OPENAI_API_KEY" })).toEqual(["api.openai.example"]);
    expect(await hostsOf({ credential_id: "bound" })).toEqual(["a.example", "b.example"]);
    expect(await hostsOf({ credential_id: "bound", hosts: ["b.example"] })).toEqual(["b.example"]);
    const several = ["api.openai.example", "c.example"];
    expect(await hostsOf({ credential_id: "key", env_var: "OPENAI_API_KEY", hosts: several })).toEqual(several);
  });

  it("leave a spec without credentials as it is, and ask nobody", async () => {
    const nobody = { get: () => Promise.reject(new Error("asked")), list: () => Promise.reject(new Error("asked")) };
    const spec = specOf({});
    expect(await bindCredentials(spec, { directory: nobody, owner: ANN, providerUrls: {} })).toBe(spec);
  });

  it.each<[string, Record<string, unknown>]>([
    [
      "credentials.0.env_var: the operator says of no API of this agent",
      {
        agent_provider: "gemini-cli",
        credentials: [{ credential_id: "key", env_var: "GEMINI_API_KEY", hosts: ["c.example"] }],
      },
    ],
    ["credentials.0.hosts: say which", { credentials: [{ credential_id: "key", env_var: "X" }] }],
    [
      "credentials.0.hosts: the agent's API is at api.openai.example",
      { credentials: [{ credential_id: "key", env_var: "OPENAI_API_KEY", hosts: ["c.example"] }] },
    ],
    [
      "credentials.0.hosts: by its metadata the credential is not for c.example",
      { credentials: [{ credential_id: "bound", hosts: ["a.example", "c.example"] }] },
    ],
    [
      "credentials.0.hosts: by its metadata the credential is not for api.openai.example",
      { credentials: [{ credential_id: "bound", env_var: "OPENAI_API_KEY" }] },
    ],
    ["credentials.0.hosts: `hosts` of the credential's metadata", { credentials: [{ credential_id: "odd" }] }],
    ["credentials.0.hosts: `hosts` of the credential's metadata", { credentials: [{ credential_id: "wild" }] }],
    [
      "credentials.1.hosts: another one is bound to a.example",
      {
        credentials: [
          { credential_id: "key", hosts: ["a.example"] },
          { credential_id: "other", hosts: ["c.example", "a.example"] },
        ],
      },
    ],
    ["git_repos.0.credential_id: by its metadata", repo("bound", "https://c.example/x/y")],
    ...["aws", "app", "url"].flatMap((id): [string, Record<string, unknown>][] => [
      [
        "credentials.0.credential_id: it is of the kind",
        { credentials: [{ credential_id: id, hosts: ["a.example"] }] },
      ],
      ["git_repos.0.credential_id: it is of the kind", repo(id)],
    ]),
  ])("are refused with the field: %s", async (message, body) => {
    const error = await bound(body).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ code: "config_validation_error", message: expect.stringContaining(message) });
  });
});

describe("credentials of a sandbox", () => {
  it("are those that its maker sees", async () => {
    for (const body of [{ credentials: [{ credential_id: "gone", hosts: ["a.example"] }] }, repo("gone")]) {
      await expect(bound(body)).rejects.toMatchObject({ code: "credential_not_found" });
    }
    const asked: unknown[] = [];
    await bound(repo("pat"), {
      ...STORE,
      get: (id, caller) => {
        asked.push([id, caller]);
        return STORE.get(id, caller);
      },
    });
    expect(asked).toEqual([["pat", ANN]]);
  });

  it("need a store", async () => {
    const error = new EngineError("not_configured", "no key");
    const none = { get: () => Promise.reject(error), list: () => Promise.reject(error) };
    await expect(bound(repo("pat"), none)).rejects.toBe(error);
  });

  it("are each named once", () => {
    const credentials = ["key", "pat"].map((id) => ({ credential_id: id, hosts: [`${id}.example`] }));
    expect(credentialIdsIn(specOf({ credentials, ...repo("pat") }))).toEqual(["key", "pat"]);
    expect(credentialIdsIn(specOf({}))).toEqual([]);
  });
});

describe("a label", () => {
  it("stands for the one credential that has it", async () => {
    const directory = directoryOf([
      { ...credential("a"), label: "once" },
      { ...credential("b"), label: "twice" },
      { ...credential("c"), label: "twice" },
    ]);
    const find = (label: string) => idOfLabel({ directory, owner: ANN }, label, "f");
    expect(await find("once")).toBe("a");
    await expect(find("twice")).rejects.toMatchObject({
      code: "config_validation_error",
      message: "f: 2 credentials have that label: name it by its credential_id",
    });
    await expect(find("none")).rejects.toMatchObject({ code: "credential_not_found" });
  });

  it("of another's credential leads nowhere, and of a shared one only where the caller has none of that label", async () => {
    const directory = directoryOf([
      { ...credential("anns"), label: "key" },
      { ...credential("bobs"), label: "key", owner: "bob", shared: true },
      { ...credential("hidden"), label: "hidden", owner: "bob" },
    ]);
    const find = (owner: JobOwner, label: string) => idOfLabel({ directory, owner }, label, "f");
    expect(await find(ANN, "key")).toBe("anns");
    expect(await find(BOB, "key")).toBe("bobs");
    expect(await find(caller("carl"), "key")).toBe("bobs");
    const [theirs, nobodys] = ["hidden", "none"].map((label) => find(ANN, label).catch((error: unknown) => error));
    expect(await theirs).toMatchObject({
      code: "credential_not_found",
      message: ((await nobodys) as Error).message.replace("none", "hidden"),
    });
    expect(await find(ROOT, "hidden")).toBe("hidden");
  });
});

describe("a credential of another", () => {
  const directory = directoryOf([
    credential("closed", "pat", { hosts: ["a.example"] }),
    { ...credential("shared", "pat", { hosts: ["a.example", "api.openai.example"] }), shared: true },
    { ...credential("anywhere"), shared: true },
    { ...credential("nobodys"), owner: "admins:" },
    credential("own"),
  ]);
  const bind = (
    owner: JobOwner,
    body: Record<string, unknown>,
    more: Partial<Parameters<typeof bindCredentials>[1]> = {},
  ) => bindCredentials(specOf(body), { directory, owner, providerUrls: URLS, ...more });
  const toHost = (id: string, ...hosts: string[]) => ({ credentials: [{ credential_id: id, env_var: "X", hosts }] });
  const refused = { code: "config_validation_error" };

  it("that is not shared is not there, whatever it is named by", async () => {
    for (const body of [toHost("closed", "a.example"), repo("closed")]) {
      const error = await bind(BOB, body).catch((reason: unknown) => reason);
      const missing = JSON.parse(JSON.stringify(body).replace("closed", "nothing")) as typeof body;
      const other = await bind(BOB, missing).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "credential_not_found" });
      expect((error as Error).message).toBe((other as Error).message.replace("nothing", "closed"));
    }
  });

  it("goes to the hosts of its metadata alone, and nowhere where that names none", async () => {
    expect((await bind(BOB, toHost("shared", "a.example"))).credentials?.[0]?.hosts).toEqual(["a.example"]);
    expect(await bind(BOB, repo("shared"))).toBeDefined();
    await expect(bind(BOB, toHost("shared", "evil.example"))).rejects.toMatchObject(refused);
    await expect(bind(BOB, repo("shared", "https://evil.example/x/y"))).rejects.toMatchObject(refused);
    // An admin may use all, and still is not their owner.
    for (const [by, id] of [
      [BOB, "anywhere"],
      [ROOT, "own"],
    ] as const) {
      await expect(bind(by, toHost(id, "evil.example"))).rejects.toMatchObject(refused);
      await expect(bind(by, repo(id, "https://evil.example/x/y"))).rejects.toMatchObject(refused);
      const agents = { credentials: [{ credential_id: id, env_var: "OPENAI_API_KEY" }] };
      await expect(bind(by, agents)).rejects.toMatchObject(refused);
    }
    expect(await bind(ANN, toHost("own", "c.example"))).toBeDefined();
    expect(await bind(ROOT, toHost("nobodys", "c.example"))).toBeDefined();
  });

  it("goes where the author of the spec says only if it is the author's", async () => {
    // Bob's workspace, which an admin or ann launches, has nobody's token sent to a host of bob's.
    for (const [owner, id] of [
      [ANN, "own"],
      [ROOT, "own"],
      [ROOT, "nobodys"],
    ] as const) {
      await expect(bind(owner, toHost(id, "evil.example"), { author: "bob" })).rejects.toMatchObject(refused);
    }
    // Nor into the sandbox of an admin, who could read what comes back.
    await expect(bind(ROOT, toHost("own", "c.example"), { author: "ann" })).rejects.toMatchObject(refused);
    expect(await bind(ANN, toHost("closed", "a.example"), { author: "bob" })).toBeDefined();
  });

  it("goes over TLS alone: name servers are the maker's", async () => {
    const plain = createRequest.parse({ agent_provider: "codex" });
    const gitRepos = [
      { url: "http://a.example/x/y", pin: undefined, path: "/home/agent/y", depth: undefined, credentialId: "shared" },
    ];
    const ofBob = { directory, owner: BOB, providerUrls: { codex: "http://api.openai.example" } };
    await expect(bindCredentials({ ...plain, gitRepos }, ofBob)).rejects.toMatchObject(refused);
    const agents = { credentials: [{ credential_id: "shared", env_var: "OPENAI_API_KEY" }] };
    await expect(bindCredentials(specOf(agents), ofBob)).rejects.toMatchObject(refused);
    expect(await bind(BOB, agents)).toBeDefined();
    expect(await bindCredentials({ ...plain, gitRepos }, { ...ofBob, owner: ANN })).toBeDefined();
  });
});
