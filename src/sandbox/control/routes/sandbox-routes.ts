import { ACTION_ROUTES, sandboxStatsRoute } from "./actions.ts";
import * as exec from "./exec.ts";
import * as files from "./files.ts";
import * as layers from "./image-layers.ts";
import * as images from "./images.ts";
import * as logs from "./logs.ts";
import * as caps from "./node-caps.ts";
import * as nodes from "./nodes.ts";
import { PORT_ROUTES } from "./ports.ts";
import { readyRoute } from "./ready.ts";
import * as sandboxes from "./sandboxes.ts";
import * as sessionMessages from "./session-messages.ts";
import * as sessions from "./sessions.ts";
import { sessionStreamRoute } from "./session-stream.ts";
import { shellRoute } from "./shell.ts";
import * as stream from "./stream.ts";
import * as volumes from "./volumes.ts";
import { WORKSPACE_ROUTES } from "./workspaces.ts";

/** In the order of the specification. */
export const SANDBOX_ROUTES = [
  readyRoute,
  sandboxes.createSandboxRoute,
  sandboxes.listSandboxesRoute,
  sandboxes.getSandboxRoute,
  sandboxes.deleteSandboxRoute,
  ...ACTION_ROUTES,
  sandboxStatsRoute,
  logs.sandboxLogsRoute,
  stream.sandboxStreamRoute,
  exec.execStreamRoute,
  exec.resumeExecRoute,
  exec.killExecRoute,
  shellRoute,
  sessions.createSessionRoute,
  sessions.listSessionsRoute,
  sessions.getSessionRoute,
  sessionMessages.sendMessageRoute,
  sessions.interruptSessionRoute,
  sessionStreamRoute,
  files.listFilesRoute,
  files.getFileRoute,
  files.putFileRoute,
  files.deleteFileRoute,
  ...PORT_ROUTES,
  volumes.listVolumesRoute,
  volumes.deleteVolumeRoute,
  ...WORKSPACE_ROUTES,
  nodes.reportNodeRoute,
  nodes.orderRoute,
  nodes.historyRoute,
  nodes.recordBatchRoute,
  nodes.linkRoute,
  caps.listNodesRoute,
  caps.capNodeRoute,
  images.buildImageRoute,
  images.listImagesRoute,
  images.getImageBuildRoute,
  images.shareImageRoute,
  images.deleteImageRoute,
  layers.readLayerPartRoute,
  layers.writeLayerPartRoute,
];
