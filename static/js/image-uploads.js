// Images that go with a message: picked, pasted or dropped, and shown before they are sent. In a chat
// each is uploaded at once; before a chat's first message they wait in the form's own file field.

const MOST = 10;

/** The images of a composer: `any()` tells whether there are some to send, `ready()` waits until they
 * are uploaded, `kept()` lists them, `clear(sent)` takes those away, and what was refused. */
export function pictures(form) {
  const picker = form.querySelector("[data-picker] input");
  if (!picker) return { any: () => false, ready: async () => {}, kept: () => [], clear: () => {} };
  const list = form.querySelector("[data-pictures]");
  const blank = form.querySelector("[data-picture]");
  const kept = new Set();
  let uploads = Promise.resolve();
  picker.closest("[data-picker]").dataset.ready = "";

  function add(files) {
    for (const file of files) {
      if (kept.size >= MOST) {
        refuse(show(file), list.dataset.saysMany);
        break;
      }
      const one = { file, item: show(file, () => kept.delete(one)) };
      kept.add(one);
      if (form.dataset.upload) uploads = uploads.then(() => upload(one));
      else draw(one.item, file);
    }
    hold();
  }

  function show(file, forget = () => {}) {
    const item = blank.content.cloneNode(true).firstElementChild;
    item.querySelector("[data-name]").textContent = file.name;
    item.querySelector("[data-remove]").addEventListener("click", () => {
      forget();
      item.remove();
      list.hidden = !list.children.length;
      hold();
      form.querySelector("textarea").focus();
    });
    list.append(item);
    list.hidden = false;
    return item;
  }

  /** What waits in the file field goes with the form. Uploads leave it empty. */
  function hold() {
    const waiting = new DataTransfer();
    if (!form.dataset.upload) for (const { file } of kept) waiting.items.add(file);
    picker.files = waiting.files;
  }

  async function upload(one) {
    if (!kept.has(one)) return;
    const bar = one.item.querySelector("progress");
    try {
      const { id, url } = await post(form, one.file, (share) => { bar.value = share; });
      const image = new Image();
      image.src = url;
      image.alt = "";
      bar.replaceWith(image);
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = "attachments";
      field.value = id;
      one.item.append(field);
    } catch (error) {
      kept.delete(one);
      refuse(one.item, error.message || list.dataset.saysLost);
    }
  }

  picker.addEventListener("change", () => add([...picker.files]));
  form.addEventListener("paste", (event) => {
    const files = imagesIn(event.clipboardData);
    // A word processor puts a picture of the text beside the text.
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    add(files);
  });
  form.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    form.dataset.over = "";
  });
  form.addEventListener("dragleave", () => delete form.dataset.over);
  form.addEventListener("drop", (event) => {
    delete form.dataset.over;
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  });

  // Picked before this ran, or kept by the browser when its reader came back.
  add([...picker.files]);

  return {
    any: () => kept.size > 0,
    ready: () => uploads,
    kept: () => [...kept],
    clear(sent) {
      for (const one of sent) kept.delete(one);
      list.replaceChildren(...[...kept].map(({ item }) => item));
      list.hidden = !kept.size;
      hold();
    },
  };
}

const imagesIn = (data) => [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));

function refuse(item, reason) {
  item.classList.add("refused");
  item.querySelector("[data-thumb]").replaceChildren();
  item.querySelector("input").remove();
  const line = item.querySelector("[data-refused]");
  line.textContent = reason;
  line.hidden = false;
}

/** A small drawing of a file that is not uploaded yet: a policy without blob: shows no other. */
async function draw(item, file) {
  const thumb = item.querySelector("[data-thumb]");
  thumb.replaceChildren();
  try {
    const bitmap = await createImageBitmap(file, { resizeHeight: 96 });
    const canvas = document.createElement("canvas");
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    thumb.append(canvas);
  } catch {
    // The server says what is wrong with it.
  }
}

/** Uploads with progress, which fetch does not tell. Rejects with the server's reason, if it gave one. */
function post(form, file, onProgress) {
  const body = new FormData();
  body.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", form.dataset.upload);
  request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
  request.responseType = "json";
  request.upload.addEventListener("progress", (event) => onProgress(event.loaded / event.total));
  return new Promise((resolve, reject) => {
    request.addEventListener("load", () => {
      if (request.status === 201 && request.response) resolve(request.response);
      else reject(new Error(request.response?.detail ?? ""));
    });
    request.addEventListener("error", () => reject(new Error("")));
    request.send(body);
  });
}
