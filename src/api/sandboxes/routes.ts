import { forwardedRoute, type ForwardCall } from "../edge/forwarded-route.ts";
import type { Route } from "../route.ts";
import * as actions from "./actions.ts";
import type { SandboxDeps } from "./deps.ts";
import * as exec from "./exec.ts";
import * as files from "./files.ts";
import * as layers from "./image-layers.ts";
import * as images from "./images.ts";
import * as logs from "./logs.ts";
import * as caps from "./node-caps.ts";
import * as nodes from "./nodes.ts";
import { portRoutes, portRows } from "./ports.ts";
import { readyRoute, readyRow } from "./ready.ts";
import * as sandboxes from "./sandboxes.ts";
import * as sessionMessages from "./session-messages.ts";
import * as sessions from "./sessions.ts";
import { sessionStreamRoute, sessionStreamRow } from "./session-stream.ts";
import { shellRoute, shellRow } from "./shell.ts";
import * as stream from "./stream.ts";
import * as volumes from "./volumes.ts";
import { workspaceRoutes, workspaceRows } from "./workspaces.ts";

/** The routes of sandboxes, in the order of the specification: answered here, or by a peer. */
export function sandboxRoutes(answers: { here: SandboxDeps } | { forward: ForwardCall } | undefined): Route[] {
  if (answers === undefined) return [];
  if ("forward" in answers) return ROWS.map((row) => forwardedRoute(row, answers.forward));
  const deps = answers.here;
  return [
    readyRoute(deps),
    sandboxes.createSandboxRoute(deps),
    sandboxes.listSandboxesRoute(deps),
    sandboxes.getSandboxRoute(deps),
    sandboxes.deleteSandboxRoute(deps),
    actions.startSandboxRoute(deps),
    actions.stopSandboxRoute(deps),
    actions.pauseSandboxRoute(deps),
    actions.resumeSandboxRoute(deps),
    actions.sandboxStatsRoute(deps),
    logs.sandboxLogsRoute(deps),
    stream.sandboxStreamRoute(deps),
    exec.execStreamRoute(deps),
    exec.resumeExecRoute(deps),
    exec.killExecRoute(deps),
    shellRoute(deps),
    sessions.createSessionRoute(deps),
    sessions.listSessionsRoute(deps),
    sessions.getSessionRoute(deps),
    sessionMessages.sendMessageRoute(deps),
    sessions.interruptSessionRoute(deps),
    sessionStreamRoute(deps),
    files.listFilesRoute(deps),
    files.getFileRoute(deps),
    files.putFileRoute(deps),
    files.deleteFileRoute(deps),
    ...portRoutes(deps),
    volumes.listVolumesRoute(deps),
    volumes.deleteVolumeRoute(deps),
    ...workspaceRoutes(deps),
    nodes.reportNodeRoute(deps),
    nodes.orderRoute(deps),
    nodes.historyRoute(deps),
    nodes.recordBatchRoute(deps),
    nodes.linkRoute(deps),
    caps.listNodesRoute(deps),
    caps.capNodeRoute(deps),
    images.buildImageRoute(deps),
    images.listImagesRoute(deps),
    images.getImageBuildRoute(deps),
    images.shareImageRoute(deps),
    images.deleteImageRoute(deps),
    layers.readLayerPartRoute(deps),
    layers.writeLayerPartRoute(deps),
  ];
}

const ROWS = [
  readyRow,
  sandboxes.createSandboxRow,
  sandboxes.listSandboxesRow,
  sandboxes.getSandboxRow,
  sandboxes.deleteSandboxRow,
  actions.startSandboxRow,
  actions.stopSandboxRow,
  actions.pauseSandboxRow,
  actions.resumeSandboxRow,
  actions.sandboxStatsRow,
  logs.sandboxLogsRow,
  stream.sandboxStreamRow,
  exec.execStreamRow,
  exec.resumeExecRow,
  exec.killExecRow,
  shellRow,
  sessions.createSessionRow,
  sessions.listSessionsRow,
  sessions.getSessionRow,
  sessionMessages.sendMessageRow,
  sessions.interruptSessionRow,
  sessionStreamRow,
  files.listFilesRow,
  files.getFileRow,
  files.putFileRow,
  files.deleteFileRow,
  ...portRows,
  volumes.listVolumesRow,
  volumes.deleteVolumeRow,
  ...workspaceRows,
  nodes.reportNodeRow,
  nodes.orderRow,
  nodes.historyRow,
  nodes.recordBatchRow,
  nodes.linkRow,
  caps.listNodesRow,
  caps.capNodeRow,
  images.buildImageRow,
  images.listImagesRow,
  images.getImageBuildRow,
  images.shareImageRow,
  images.deleteImageRow,
  layers.readLayerPartRow,
  layers.writeLayerPartRow,
];
