import type { Skill } from "./skill.ts";

/** Also written for coding agents by `engine install-skill`, whose test checks every command in it. */
export const DEPLOY: Skill = {
  name: "engine-deploy",
  description:
    "Runbook of the engine: bring up a deployment with engine deploy, see how it is, update it, back it up and restore it. " +
    "Use it when asked to deploy, upgrade, check, back up or restore an engine.",
  body: `# Runbook of the engine

Ask the user before anything that changes a deployment: \`up\`, \`destroy\`, \`update\`, \`restore\` and \`prune\`. Show them what
\`--print-only\` or \`--check\` prints first. Never add \`--force\` or \`--yes\` on your own.

## Bring up

A deployment is a folder below ENGINE_HOME; \`--name\` says which one. On this machine it is a small cluster, for trials; in a
cloud it is made by Terraform or OpenTofu.

~~~sh
engine deploy init --name lab --target local --print-only
engine deploy init --name lab --target local
engine deploy up --name lab --print-only
engine deploy up --name lab
engine deploy init --name prod --region eu-central-1 --domain engine.example.com --print-only
~~~

\`up\` is also what mends a deployment: it brings it to what its folder says, and may be run again after a failure. It prints
the address, and the admin token the first time. Then save the server for the other commands:

~~~sh
engine connect https://engine.example.com --token "$TOKEN"
~~~

One server on this machine, as a service of its user:

~~~sh
engine service install --addr 127.0.0.1:7777
engine service status --json
~~~

## Status

~~~sh
engine deploy status --name lab --json
engine status --json
engine jobs list --json
engine config --json
~~~

Exit code 1 means that something is not well. \`engine deploy status\` names each process, its version, and what differs from
the folder of the deployment.

## Update

Back up first. \`--check\` ends with 10 where there is a newer release. The update tries the new program and takes the old one
back if its service does not come up. Then \`engine deploy up\` restarts the processes of a local deployment one by one.

~~~sh
engine backup create ~/backups
engine update --check
engine update
engine deploy up --name lab
~~~

## Backups

A backup holds everything, and is made while servers run. Verify one before you rely on it. A restore needs an empty home
or catalog on which no server runs.

~~~sh
engine backup create ~/backups --keep 14
engine backup list ~/backups --json
engine backup verify ~/backups
ENGINE_HOME=~/restored engine backup restore ~/backups
engine backup prune ~/backups --keep 14
~~~

## End

What the deployment stored stays unless the user asks for its deletion.

~~~sh
engine deploy destroy --name lab
~~~
`,
};
