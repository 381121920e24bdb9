// Reads server-sent events from a fetch response. An EventSource cannot send a POST.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

export const MEDIA_TYPE = "text/event-stream";

export function isStream(response) {
  return response.ok && (response.headers.get("Content-Type") ?? "").startsWith(MEDIA_TYPE);
}

/** Yields {event, data} for each event. Comments, such as pings, are skipped. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const frames = rest.split("\n\n");
      rest = frames.pop();
      for (const frame of frames) {
        const read = parse(frame);
        if (read) yield read;
      }
    }
  } finally {
    // Also closes the connection if the caller stops reading.
    reader.cancel().catch(() => {});
  }
}

function parse(frame) {
  let event = "message";
  const data = [];
  for (const line of frame.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length ? { event, data: data.join("\n") } : null;
}
