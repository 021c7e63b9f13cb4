import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OpenedCatalog } from "../../../catalog/contract.ts";
import { seededRandom } from "../../../core/random.ts";
import { keyringOf } from "../../../auth/sealing/keyring.ts";
import { ANN, BOB, controlPlaneOn, originOf, ROOT, type ControlPlane } from "../scheduler/scheduler.test-kit.ts";
import { resealEnvs } from "../scheduler/sealed-env.ts";
import { directoryOf } from "../credentials/directory.test-kit.ts";
import { workspaceFields, type WorkspaceContent } from "./fields.ts";
import { workspacesOn } from "./workspaces.test-kit.ts";
import type { Workspaces } from "./workspaces.ts";

const [OLD, NEW] = ["the old key", "the new key"] as const;

function contentOf(name: string, spec: Record<string, unknown> = {}, labels: Record<string, string> = {}) {
  return workspaceFields.parse({ name, labels, spec: { agent: { provider: "codex" }, ...spec } });
}

const by = (caller: typeof ANN) => ({ caller, origin: originOf(caller) });

/** What workspaces must do on every catalog. */
export function workspacesContract(name: string, open: () => Promise<OpenedCatalog>): void {
  describe(`workspaces on ${name}`, () => {
    let opened: OpenedCatalog;
    let plane: ControlPlane;
    let workspaces: Workspaces;
    beforeEach(async () => {
      opened = await open();
      plane = controlPlaneOn(opened);
      workspaces = workspacesOn(plane, { maxPerTenant: 3 });
    });
    afterEach(async () => {
      plane.fabric.close();
      await opened.close();
    });
    const create = (content: WorkspaceContent, caller = ANN) => workspaces.create(content, by(caller));
    const ids = async (filter: Partial<Parameters<Workspaces["list"]>[0]>, asker = ANN) =>
      (await workspaces.list({ limit: 10, ...filter }, asker)).map(({ id }) => id);

    const launched = async (id: string, asker = ANN) =>
      (await workspaces.sandboxes(id, { limit: 10 }, asker)).map((sandbox) => sandbox.id);

    it("keeps what it was told, for its tenant and for admins", async () => {
      const content = { ...contentOf("app", { environment: { KEY: "value" } }, { team: "a" }), description: "mine" };
      const made = await create(content);
      expect(made).toMatchObject({ ...content, tenant: "ann", closedEnv: undefined });
      expect(await workspaces.get(made.id, ANN)).toEqual(made);
      expect(await workspaces.get(made.id, ROOT)).toEqual(made);
      for (const id of [made.id, "x", "\0"]) {
        await expect(workspaces.get(id, BOB)).rejects.toMatchObject({ code: "workspace_not_found" });
      }
      await expect(workspaces.change(made.id, { name: "b" }, by(BOB))).rejects.toMatchObject({
        code: "workspace_not_found",
      });
      await expect(workspaces.remove(made.id, by(BOB))).rejects.toMatchObject({ code: "workspace_not_found" });
      await expect(workspaces.launch(made.id, {}, by(BOB))).rejects.toMatchObject({ code: "workspace_not_found" });
      const [entry] = await plane.audit.list({ limit: 1 });
      expect(entry).toMatchObject({ actor: "ann", action: "workspace.create", target: made.id, outcome: "ok" });
      expect(JSON.stringify(entry)).not.toContain("value");
    });

    it("changes only what is given", async () => {
      const made = await create({
        ...contentOf("app", { environment: { A: "1" } }, { team: "a" }),
        description: "old",
      });
      opened.clock.advance(1_000);
      const renamed = await workspaces.change(made.id, { name: "other" }, by(ANN));
      expect(renamed).toEqual({ ...made, name: "other", updatedAtMs: renamed.updatedAtMs });
      const { spec } = contentOf("x", { environment: { B: "2" } });
      const changed = await workspaces.change(made.id, { description: null, spec, labels: {} }, by(ANN));
      expect(changed).toMatchObject({ name: "other", description: undefined, labels: {}, spec });
      expect(changed.spec.environment).toEqual({ B: "2" });
      expect(await workspaces.get(made.id, ANN)).toEqual(changed);
      expect(await workspaces.change(made.id, {}, by(ANN))).toMatchObject({ name: "other", spec });
    });

    it("lists by a part of the name, and by labels, a page at a time", async () => {
      const a = await create(contentOf("Alpha 100%", {}, { team: "a", env: "x" }));
      const b = await create(contentOf("alphabet", {}, { team: "a" }));
      const c = await create(contentOf("_", {}, { team: "b" }));
      const other = await create(contentOf("alpha"), BOB);
      expect(await ids({})).toEqual([c.id, b.id, a.id]);
      expect(await ids({}, ROOT)).toEqual([other.id, c.id, b.id, a.id]);
      expect(await ids({ name: "alpha" })).toEqual([b.id]);
      expect(await ids({ name: "lpha" })).toEqual([b.id, a.id]);
      expect(await ids({ name: "%" })).toEqual([a.id]);
      expect(await ids({ name: "" })).toEqual([c.id, b.id, a.id]);
      expect(await ids({ name: "a\0" })).toEqual([]);
      expect(await ids({ labels: [["team", "a"]] })).toEqual([b.id, a.id]);
      expect(
        await ids({
          labels: [
            ["team", "a"],
            ["env", "x"],
          ],
        }),
      ).toEqual([a.id]);
      expect(await ids({ limit: 2 })).toEqual([c.id, b.id]);
      expect(await ids({ limit: 2, before: b.id })).toEqual([a.id]);
    });

    it("refuses what no sandbox could be made of, and too many", async () => {
      await expect(create(contentOf("a", { agent: { provider: "x" } }))).rejects.toMatchObject({
        code: "agent_provider_not_found",
      });
      const elsewhere = contentOf("a", { repositories: [{ url: "https://elsewhere.example/a.git" }] });
      await expect(create(elsewhere)).rejects.toMatchObject({
        code: "config_validation_error",
        message: expect.stringMatching(/^spec\.repositories\.0\.url: its host is neither/) as unknown,
      });
      await expect(
        create(contentOf("a", { repositories: [{ url: "http://git.example/a.git" }] })),
      ).rejects.toMatchObject({
        message: "spec.repositories.0.url: accepted are https:// URLs",
      });
      const network = { allowed_hosts: ["elsewhere.example"] };
      const made = await create(contentOf("a", { ...elsewhere.spec, network }));
      await expect(workspaces.change(made.id, { spec: elsewhere.spec }, by(ANN))).rejects.toMatchObject({
        code: "config_validation_error",
      });
      await create(contentOf("b"));
      await create(contentOf("c"));
      await expect(create(contentOf("d"))).rejects.toMatchObject({ code: "rate_limited" });
      await create(contentOf("d"), BOB);
      await workspaces.remove(made.id, by(ANN));
      await create(contentOf("d"));
    });

    it("is launched into sandboxes that keep what it was then, and outlive it", async () => {
      const spec = {
        agent: { provider: "claude-code" },
        repositories: [{ url: "https://git.example/org/app.git", tag: "v1", depth: 1 }],
        pre_commands: [{ command: "make" }],
        binaries: [{ manager: "npm", name: "typescript", version: "5.9.2" }],
        filesystem: { working_directory: "/workspace" },
        environment: { KEY: "value" },
        timeout_secs: 60,
      };
      const made = await create(contentOf("app", spec, { team: "a", env: "x" }));
      const sandbox = await workspaces.launch(made.id, { name: "box", labels: { env: "y" } }, by(ANN));
      expect(sandbox).toMatchObject({ tenant: "ann", owner: ANN, state: "pending" });
      expect(sandbox.spec).toMatchObject({
        agentProvider: "claude-code",
        name: "box",
        labels: { team: "a", env: "y" },
        network: { enabled: true },
        envVars: { KEY: "value" },
        workingDirectory: "/workspace",
        gitRepos: [
          {
            url: "https://git.example/org/app.git",
            pin: { kind: "tag", name: "v1" },
            path: "/workspace/app",
            depth: 1,
          },
        ],
        preCommands: [{ name: "make", command: "make", args: [], timeoutSecs: 600 }],
        binaries: [{ manager: "npm", name: "typescript", version: "5.9.2" }],
        timeoutSecs: 60,
      });
      const others = await workspaces.launch(made.id, {}, by(ROOT));
      expect(others.tenant).toBe("root");
      expect(await launched(made.id, ANN)).toEqual([sandbox.id]);
      expect(await launched(made.id, ROOT)).toEqual([others.id, sandbox.id]);
      const older = await workspaces.sandboxes(made.id, { limit: 1, before: others.id }, ROOT);
      expect(older).toEqual([{ id: sandbox.id }]);
      expect(await workspaces.sandboxes(made.id, { limit: 1, before: sandbox.id }, ROOT)).toEqual([]);
      await expect(workspaces.launch(made.id, { name: "box" }, by(ANN))).rejects.toMatchObject({
        code: "sandbox_already_exists",
      });
      await plane.act(others.id, "delete", ROOT);
      expect(await launched(made.id, ROOT)).toEqual([sandbox.id]);
      await workspaces.remove(made.id, by(ANN));
      expect((await plane.sandboxes.get(sandbox.id, ANN)).spec).toEqual(sandbox.spec);
      await expect(launched(made.id, ANN)).rejects.toMatchObject({ code: "workspace_not_found" });
    });

    it("launches with credentials that it names by their id or their label", async () => {
      const known = { kind: "pat", metadata: { hosts: ["a.example"] } };
      const credentials = directoryOf([
        { ...known, id: "c1", label: "mine" },
        { ...known, id: "c2", label: "twice", metadata: { hosts: ["b.example"] } },
        { ...known, id: "c3", label: "twice" },
      ]);
      const all = controlPlaneOn(opened, { seed: 2, credentials });
      const named = workspacesOn(all, { credentials });
      const launch = async (uses: unknown[]) => {
        const { id } = await named.create(contentOf("app", { credentials: uses }), by(ANN));
        return (await named.launch(id, {}, by(ANN))).spec.credentials;
      };
      expect(await launch([{ name: "mine", env_var: "TOKEN" }, { credential_id: "c2" }])).toEqual([
        { credentialId: "c1", envVar: "TOKEN", hosts: ["a.example"] },
        { credentialId: "c2", hosts: ["b.example"] },
      ]);
      await expect(launch([{ name: "twice" }])).rejects.toMatchObject({
        code: "config_validation_error",
        message: expect.stringMatching(/^credentials\.0\.name: 2 credentials/) as unknown,
      });
      await expect(launch([{ name: "none" }])).rejects.toMatchObject({ code: "credential_not_found" });
      all.fabric.close();
    });

    it("sends a credential of who launches it to no host that its author chose", async () => {
      const credentials = directoryOf([
        { id: "of-ann", label: "key", kind: "pat", metadata: {} },
        { id: "of-root", label: "key", kind: "pat", metadata: {}, owner: "root" },
        { id: "bound", label: "bound", kind: "pat", metadata: { hosts: ["a.example"] }, owner: "root" },
      ]);
      const all = controlPlaneOn(opened, { seed: 2, credentials });
      const lured = workspacesOn(all, { credentials });
      const launch = async (use: object, hosts: string[]) => {
        const { id } = await lured.create(contentOf("app", { credentials: [{ ...use, hosts }] }), by(BOB));
        return (await lured.launch(id, {}, by(ROOT))).spec.credentials;
      };
      for (const use of [
        { credential_id: "of-ann" },
        { credential_id: "of-root" },
        { name: "key" },
        { name: "bound" },
      ]) {
        await expect(launch(use, ["evil.example"])).rejects.toMatchObject({ code: "config_validation_error" });
      }
      expect(await launch({ name: "bound" }, ["a.example"])).toMatchObject([{ hosts: ["a.example"] }]);
      all.fabric.close();
    });

    it("seals variables, and launches with none that it cannot open", async () => {
      const random = seededRandom(1);
      const keyring = keyringOf(OLD, []);
      const sealed = workspacesOn(plane, { envSealing: { keyring, random } });
      const made = await sealed.create(contentOf("app", { environment: { KEY: "a secret" } }), by(ANN));
      expect(made.spec.environment).toEqual({ KEY: "a secret" });
      const stored = async () => JSON.stringify(await plane.records.rows("SELECT spec FROM workspaces"));
      expect(await stored()).not.toContain("a secret");
      const closed = await workspaces.get(made.id, ANN);
      expect(closed).toMatchObject({
        spec: { environment: {} },
        closedEnv: expect.stringContaining("sealed") as unknown,
      });
      await expect(workspaces.launch(made.id, {}, by(ANN))).rejects.toMatchObject({ code: "unavailable" });
      const next = { keyring: keyringOf(NEW, [OLD]), random };
      expect(await resealEnvs(plane.records, next)).toEqual({ rotated: 1, failed: [] });
      const rotated = workspacesOn(plane, { envSealing: { keyring: keyringOf(NEW, []), random } });
      expect((await rotated.get(made.id, ANN)).spec.environment).toEqual({ KEY: "a secret" });
    });
  });
}
