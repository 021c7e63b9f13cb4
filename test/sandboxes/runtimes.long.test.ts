import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { describeByRunsc } from "../../src/sandbox/runtime/runsc.test-kit.ts";
import { fieldOf } from "./sandboxes.test-kit.ts";
import { sandboxServer, TIMEOUT_MS } from "./server.test-kit.ts";

const ENV = { ENGINE_LOG_LEVEL: "info" };
const SERVER = `perl -MIO::Socket -e '
  $s = IO::Socket::INET->new(Listen => 9, LocalPort => 8080, ReuseAddr => 1);
  while ($c = $s->accept) { 1 while <$c> =~ /\\S/; print $c "HTTP/1.0 200 OK\\r\\n\\r\\nfrom inside"; close $c }'`;

/** Bubblewrap is what all other tests have. */
const RUNTIMES = [
  ["runc", describeInCage],
  ["runsc", describeByRunsc],
] as const;

for (const [runtime, describeIt] of RUNTIMES) {
  describeIt(`a server that runs sandboxes by ${runtime}`, () => {
    const machines = sandboxServer(() => ({ ...ENV, ENGINE_SANDBOX_RUNTIME: runtime }));
    const { client } = machines;
    const call = async (method: string, path: string, body?: unknown) => {
      const { status, text, json } = await client.call(method, path, body);
      return { status, text, state: fieldOf(json, "state") };
    };

    it("takes one through all its states, also when it is killed meanwhile", { timeout: TIMEOUT_MS }, async () => {
      const id = await client.create({
        persistence: "persistent",
        network: { enabled: true, allowed_hosts: ["allowed.example"] },
        ports: [{ port: 8080 }],
        volumes: [{ name: "shared", mount_path: "/data", size_mb: 64 }],
        provisioning_scripts: ["echo provisioned > /etc/mark"],
      });
      expect(await client.exec(id, "cat /etc/mark; id -un; exit 137")).toEqual({
        stdout: "provisioned\nagent\n",
        exitCode: 137,
      });
      const asked = "curl -s -o /dev/null -w '%{http_code}' http://example.com/";
      expect(await client.exec(id, asked)).toEqual({ stdout: "403", exitCode: 0 });

      await showsFilesAsTheyAre(id);

      const server = client.exec(id, SERVER);
      await expect.poll(async () => (await call("GET", `/${id}/ports/8080/`)).text).toBe("from inside");
      expect(await call("POST", `/${id}/pause`)).toMatchObject({ state: "paused" });
      expect((await call("GET", `/${id}/files/data/f`)).text).toBe("by exec");
      expect(await call("POST", `/${id}/resume`)).toMatchObject({ state: "running" });
      expect((await call("GET", `/${id}/ports/8080/`)).text).toBe("from inside");

      await Promise.all([server.catch(() => undefined), machines.stop("SIGKILL")]);
      await machines.start();
      await expect.poll(() => machines.log()).toContain("going on with a sandbox of the process before");
      expect((await call("GET", `/${id}/ports/8080/`)).text).toBe("from inside");
      expect(await client.exec(id, asked)).toEqual({ stdout: "403", exitCode: 0 });

      expect(await call("POST", `/${id}/stop`)).toMatchObject({ state: "stopped" });
      expect((await call("GET", `/${id}/files/home/agent/new`)).text).toBe("by files");
      expect(await call("POST", `/${id}/start`)).toMatchObject({ state: "running" });
      expect(await client.exec(id, "cat ~/new /data/f /etc/mark")).toEqual({
        stdout: "by filesby execprovisioned\n",
        exitCode: 0,
      });
      expect((await call("DELETE", `/${id}`)).status).toBe(204);
      await client.reaches(id, "gone");
      await pause(500);
    });

    /** What commands write is what files show, and the other way, on the disk and in volumes. */
    async function showsFilesAsTheyAre(id: string): Promise<void> {
      for (const folder of ["/home/agent", "/data", "/tmp"]) {
        expect(await client.exec(id, `printf 'by exec' > ${folder}/f && ln ${folder}/f ${folder}/same`)).toMatchObject({
          exitCode: 0,
        });
        expect((await call("GET", `/${id}/files${folder}/same`)).text).toBe("by exec");
        expect((await call("PUT", `/${id}/files${folder}/new`, "first")).status).toBe(200);
        expect((await client.exec(id, `cat ${folder}/new`)).stdout).toBe("first");
        expect((await call("PUT", `/${id}/files${folder}/new?mode=0700`, "by files")).status).toBe(200);
        expect((await client.exec(id, `cat ${folder}/new; stat -c ' %a %u:%g %s' ${folder}/new`)).stdout).toBe(
          "by files 700 1000:1000 8\n",
        );
        // One that a command has open, and read before.
        const both = `exec 3<${folder}/f; head -c 2 <&3; printf ', then more' >> ${folder}/f; sleep 0.2; cat <&3`;
        expect((await client.exec(id, both)).stdout).toBe("by exec, then more");
        expect((await call("GET", `/${id}/files${folder}/f`)).text).toBe("by exec, then more");
        expect((await call("DELETE", `/${id}/files${folder}/same`)).status).toBe(204);
        const listed = await client.exec(id, `ls ${folder}; printf 'by exec' > ${folder}/f`);
        expect(listed.stdout.split("\n")).toEqual(expect.arrayContaining(["f", "new"]));
        expect(listed.stdout).not.toContain("same");
      }
    }
  });
}
