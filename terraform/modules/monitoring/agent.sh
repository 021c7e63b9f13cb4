#!/bin/sh
# Writes the configuration and the token that came with the task, and becomes the Prometheus agent.
set -eu
umask 077
printf '%s\n' "$SCRAPE_CONFIG" >"$AGENT_HOME/prometheus.yml"
printf '%s' "$SCRAPE_TOKEN" >"$AGENT_HOME/engine-token"
unset SCRAPE_TOKEN
exec /bin/prometheus --agent --config.file="$AGENT_HOME/prometheus.yml" --storage.agent.path="$AGENT_HOME/data"
