import type { JSX } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { announce } from "../../base/announce.ts";
import { useIsVisibleAtOnce } from "../../base/capabilities.ts";
import { formatBytes, formatCount, plural } from "../../base/format.ts";
import { queryClient } from "../../base/query-client.ts";
import { useMay } from "../../base/session.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { Progress } from "../../components/spinner.tsx";
import { FileUpload, type UploadState } from "./file-upload.ts";

type UploadProps = { database: string; table: string; isNew: boolean };

/** A file that is dropped here goes into the table, piece by piece. */
export function Upload({ database, table, isNew }: UploadProps): JSX.Element {
  const may = useMay("write");
  const isVisibleAtOnce = useIsVisibleAtOnce();
  const [name, setName] = useState(table);
  const [inferTypes, setInferTypes] = useState(isNew);
  const [leavesLinesOut, setLeavesLinesOut] = useState(false);
  const [isOver, setOver] = useState(false);
  const [uploads, setUploads] = useState<readonly FileUpload[]>([]);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const input = useRef<HTMLInputElement>(null);
  const all = useRef<readonly FileUpload[]>([]);
  all.current = uploads;
  useEffect(() => () => all.current.forEach((upload) => upload.pause()), []);
  useWarningBeforeLeaving(() => all.current.some(({ state }) => state === "running" || state === "waiting"));
  if (!may) {
    return (
      <EmptyState icon="key" title="Sending rows needs the role write">
        <p>Ask an administrator of this server for it, or sign in as somebody who has it.</p>
      </EmptyState>
    );
  }
  const add = (files: Iterable<File>): void => {
    const target = { database, table: name.trim(), inferTypes, leavesLinesOut };
    const made = [...files].map((file) => {
      const upload: FileUpload = new FileUpload(file, target, () => {
        draw(undefined);
        if (upload.state !== "done") return;
        announce(`${file.name} is stored`);
        void queryClient.invalidateQueries({ queryKey: ["catalog"] });
        void queryClient.invalidateQueries({ queryKey: ["schema"] });
      });
      return upload;
    });
    setUploads((now) => [...now, ...made]);
    for (const upload of made) upload.start();
  };
  return (
    <div class="stack">
      {isNew && <Field label="Table" value={name} onInput={setName} isMonospaced />}
      <label>
        <input type="checkbox" checked={inferTypes} onChange={(event) => setInferTypes(event.currentTarget.checked)} />{" "}
        New columns take the type of their values
      </label>
      <label>
        <input
          type="checkbox"
          checked={leavesLinesOut}
          onChange={(event) => setLeavesLinesOut(event.currentTarget.checked)}
        />{" "}
        Leave out lines that are not JSON, and store the others
      </label>
      <div
        class={isOver ? "drop drop-over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          add(event.dataTransfer?.files ?? []);
        }}
      >
        <p>Drop a file of NDJSON here: one JSON object on each line.</p>
        <Button look="primary" icon="plus" onClick={() => input.current?.click()}>
          Choose a file
        </Button>
        <input
          ref={input}
          type="file"
          class="unseen"
          aria-label="A file of NDJSON"
          tabIndex={-1}
          multiple
          onChange={(event) => {
            add(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <p class="note">
          It is sent in pieces of 4 MiB. When something fails, choose the same file again: it goes on where it was, and
          what was stored within 24 hours is not stored twice.
          {!isVisibleAtOnce && " Rows are shown a moment after they are stored: this server commits them in batches."}
        </p>
      </div>
      {uploads.map((upload) => (
        <UploadView
          key={`${upload.file.name}/${upload.file.lastModified}/${uploads.indexOf(upload)}`}
          upload={upload}
        />
      ))}
    </div>
  );
}

const STATES: Readonly<Record<UploadState, string>> = {
  running: "Sending",
  paused: "Paused",
  waiting: "Waiting for the server",
  done: "Done",
  stopped: "Stopped",
};

function UploadView({ upload }: { upload: FileUpload }): JSX.Element {
  const { file, state, sent, rows, replayed, error, refused, refusedCount, leftOut, leftOutCount, warnings } = upload;
  const isGoing = state === "running" || state === "waiting";
  return (
    <section class="upload" aria-label={`Upload of ${file.name}`}>
      <div class="row">
        <strong class="mono">{file.name}</strong>
        <span role="status">{STATES[state]}</span>
        <span class="note">
          {formatBytes(sent)} of {formatBytes(file.size)}, {plural(rows, "row")} stored
          {replayed > 0 && `, ${plural(replayed, "piece")} had been stored before`}
          {upload.resumedFrom > 0 && `, went on after ${formatBytes(upload.resumedFrom)}`}
        </span>
        {isGoing && (
          <Button icon="stop" onClick={() => upload.pause()}>
            Pause
          </Button>
        )}
        {(state === "paused" || state === "stopped") && (
          <Button icon="play" onClick={() => upload.start()}>
            Go on
          </Button>
        )}
      </div>
      <Progress label={`Sent of ${file.name}`} value={file.size === 0 ? 1 : sent / file.size} />
      {state === "stopped" && <ErrorBox error={error} onRetry={() => upload.start()} />}
      {state === "waiting" && <p class="note">{error instanceof Error ? error.message : ""}</p>}
      {refused.map(({ fromLine, toLine, message }) => (
        <p key={fromLine} class="upload-error">
          Lines {formatCount(fromLine)} to {formatCount(toLine)} are not stored: {message}
        </p>
      ))}
      {refusedCount > refused.length && (
        <p class="upload-error">{plural(refusedCount - refused.length, "more piece")}.</p>
      )}
      {leftOut.map(({ line, message }) => (
        <p key={line} class="upload-error">
          Line {formatCount(line)} is left out: {message}
        </p>
      ))}
      {leftOutCount > leftOut.length && (
        <p class="upload-error">{plural(leftOutCount - leftOut.length, "more line")}.</p>
      )}
      {[...warnings.values()].map(({ title, count }) => (
        <p key={title} class="note">
          {formatCount(count)} {title}
        </p>
      ))}
    </section>
  );
}

function useWarningBeforeLeaving(isBusy: () => boolean): void {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent): void => {
      if (isBusy()) event.preventDefault();
    };
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, []);
}
