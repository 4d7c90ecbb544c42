// Serves a store over lines of JSON: a request a line on stdin, a reply a line on
// stdout, as package backend says. A store is an object with a method an
// operation. It takes the time itself, with timed, around the one call.

// NotRun is why a store does not do what it is asked.
export class NotRun extends Error {}

export async function serve(open) {
  let store;
  for await (const line of lines(process.stdin)) {
    let reply;
    try {
      const request = JSON.parse(line);
      if (request.op === "open") {
        store = await open(request);
        reply = {};
      } else {
        reply = await answer(store, request);
      }
    } catch (error) {
      reply = { error: error instanceof NotRun ? `unsupported: ${error.message}` : String(error?.message ?? error) };
    }
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
  await store?.close();
}

async function answer(store, request) {
  if (store === undefined) throw new Error("open a store first");
  switch (request.op) {
    case "empty":
      return (await timed(() => {})).reply;
    case "peak": // ru_maxrss, in KiB
      return { bytes: process.resourceUsage().maxRSS * 1024 };
  }
  const operation = store[request.op.replace(/-(.)/g, (_, c) => c.toUpperCase())];
  return operation === undefined ? { error: "unsupported" } : operation.call(store, request);
}

// timed waits for what f does, and gives its value and a reply with its time.
export async function timed(f) {
  const start = process.hrtime.bigint();
  const value = await f();
  const nanos = Number(process.hrtime.bigint() - start);
  return { value, reply: { nanos } };
}

// each does something with all items, so many at a time, and times each and all.
export async function each(items, writers, f) {
  const times = new Array(items.length);
  let next = 0;
  const writer = async () => {
    while (next < items.length) {
      const i = next++;
      times[i] = (await timed(() => f(items[i]))).reply.nanos;
    }
  };
  const { reply } = await timed(() => Promise.all(Array.from({ length: Math.max(writers ?? 1, 1) }, writer)));
  return { nanos: reply.nanos, each: times, count: items.length };
}

// Recent keeps the sessions open that were used last: each holds a file.
export class Recent {
  #most = 32;
  #sessions = new Map();

  async get(id, open) {
    const session = this.#sessions.get(id) ?? (await open());
    await this.put(id, session);
    return session;
  }

  async close(id) {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    await session?.close();
  }

  async put(id, session) {
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    if (this.#sessions.size <= this.#most) return;
    await this.close(this.#sessions.keys().next().value);
  }
}

// lines are those of a stream. node:readline would also break a line at U+2028.
async function* lines(stream) {
  stream.setEncoding("utf8");
  let parts = [];
  for await (const chunk of stream) {
    let from = 0;
    for (let to = chunk.indexOf("\n"); to >= 0; to = chunk.indexOf("\n", from)) {
      parts.push(chunk.slice(from, to));
      yield parts.join("");
      parts = [];
      from = to + 1;
    }
    parts.push(chunk.slice(from));
  }
}
