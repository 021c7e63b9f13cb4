import type { Address } from "../src/config/kinds.ts";
import type { SandboxDeps } from "../src/sandbox/control/routes/deps.ts";
import { mayBeNode } from "../src/sandbox/control/routes/nodes.ts";
import { SandboxEvents } from "../src/sandbox/control/events/log.ts";
import { LayerStore } from "../src/sandbox/control/images/layer-store.ts";
import { MachineImages } from "../src/sandbox/control/images/machine-images.ts";
import { advertisedUrl } from "../src/config/advertised-url.ts";
import { Gateways } from "../src/sandbox/control/link/gateways.ts";
import { NodeDirectory } from "../src/sandbox/control/link/node-directory.ts";
import { SANDBOX_METRICS } from "../src/sandbox/contract/metrics.ts";
import { sandboxConfig } from "../src/sandbox/contract/options.ts";
import { Sandboxes } from "../src/sandbox/control/sandboxes.ts";
import { volumeLimitsOf } from "../src/sandbox/control/volumes/volume-quota.ts";
import { Workspaces } from "../src/sandbox/control/workspaces/workspaces.ts";
import type { FabricParts } from "./fabric.ts";
import { keyringIn } from "./keyring.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

const DAY_MS = 86_400_000;

/** Sandboxes as one process has them: the control plane, whether nodes are in this process or elsewhere. */
export type SandboxParts = {
  deps: SandboxDeps & { nodes: NodeDirectory };
  /** Which processes nodes connect to. */
  gateways: Gateways;
  /** Says whether this process runs sandboxes itself. */
  setRuntime(runtime: ReturnType<SandboxDeps["runtime"]>): void;
  /** When requests are refused: those who follow sandboxes are asked to come again, elsewhere. */
  close(): void;
};

/**
 * The control plane of this process, for its routes and for a node in it. `listen`: where it answers them; undefined
 * where others do.
 */
export function openSandboxes(
  parts: Parts,
  { records, signals, store }: Storage,
  { deps: { fabric, audit, workers, credentials } }: Pick<FabricParts, "deps">,
  { isDraining, listen }: { isDraining: () => boolean; listen: Address | undefined },
): SandboxParts {
  const { clock, random } = parts;
  const config = sandboxConfig(parts.config);
  const keyring = keyringIn(config);
  const envSealing = keyring === undefined ? undefined : { keyring, random };
  const repositories = { hosts: config.sandboxRepositoryHosts, plainHttp: config.sandboxPlainHttpRepositories };
  const layers = new LayerStore({ records, store, prefix: config.pathPrefix });
  const images = new MachineImages({
    ...parts,
    records,
    fabric,
    layers,
    audit,
    limits: {
      maxPerTenant: config.sandboxImagesPerTenant,
      pendingTimeoutMs: config.sandboxPendingTimeoutSecs * 1_000,
      purgedAfterMs: config.artifactGcGraceSecs * 1_000,
    },
    defaults: { region: config.sandboxDefaultRegion, instanceType: config.sandboxDefaultInstanceType },
  });
  const sandboxes = new Sandboxes({
    ...parts,
    records,
    signals,
    fabric,
    audit,
    credentials,
    envSealing,
    limits: {
      maxPerTenant: config.sandboxMaxPerTenant,
      defaultImages: config.sandboxDefaultImages,
      builtImage: (provider, origin) => images.defaultOf(provider, origin),
      repositories,
      providerUrls: config.sandboxProviderUrls,
      createsPerMinute: config.sandboxCreatesPerMinute,
      createBurst: config.sandboxCreateBurst,
      pendingTimeoutMs: config.sandboxPendingTimeoutSecs * 1_000,
      eventsQuotaBytes: config.sandboxEventsBytes,
      volumes: volumeLimitsOf({ count: config.sandboxVolumesPerOwner, bytes: config.sandboxVolumesBytesPerOwner }),
      volumesKeptMs: config.sandboxVolumeDays === 0 ? undefined : config.sandboxVolumeDays * DAY_MS,
    },
  });
  const events = new SandboxEvents({ ...parts, records, signals: sandboxes.signals });
  let runtime: ReturnType<SandboxDeps["runtime"]> =
    config.sandboxRuntime === "off" ? "off" : { why: "no node is connected" };
  const nodes = new NodeDirectory(parts);
  const url =
    listen === undefined
      ? undefined
      : (config.sandboxAdvertiseUrl ?? advertisedUrl(listen, config.tlsCert !== undefined));
  SANDBOX_METRICS.of(parts.metrics).sandboxFollowers.watch({}, () => events.following);
  const gateways = new Gateways({ ...parts, records, url });
  const isAdmitted = async (workerId: string) => {
    const worker = await workers.find(workerId);
    return worker !== undefined && worker.status !== "revoked" && mayBeNode(worker);
  };
  const deps = {
    sandboxes,
    nodes,
    images,
    layers,
    link: { nodes, gateways: () => gateways.urls, isAdmitted },
    events,
    audit,
    clock,
    newId: parts.newId,
    actionWaitMs: config.sandboxActionWaitSecs * 1_000,
    callTimeoutMs: config.sandboxCallTimeoutSecs * 1_000,
    runtime: () => runtime,
    isDraining,
    workspaces: new Workspaces({
      records,
      audit,
      newId: parts.newId,
      envSealing,
      sandboxes,
      repositories,
      credentials,
      maxPerTenant: config.sandboxMaxWorkspaces,
    }),
  };
  return { deps, gateways, setRuntime: (own) => void (runtime = own), close: () => events.close() };
}
